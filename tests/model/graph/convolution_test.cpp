#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/build/convolution_nodes.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "support/input_error.h"
#include "support/random/random_graph.h"

namespace systole::model {
namespace {

using test::between;
using test::Random;

struct ConvolutionCase {
  IntegerConvolution convolution;
  Graph graph;
  std::vector<std::int32_t> picture;
};

ConvolutionCase random_case(Random& random) {
  ConvolutionCase made;
  IntegerConvolution& of = made.convolution;
  hw::Window& window = of.window;
  window.kernel_rows = static_cast<std::uint16_t>(between(random, 1, 5));
  window.kernel_cols = static_cast<std::uint16_t>(between(random, 1, 5));
  window.stride = static_cast<std::uint16_t>(between(random, 1, 3));
  const auto narrower = [&](std::uint16_t side) {
    return static_cast<std::uint8_t>(between(random, 0, side - 1U));
  };
  window.padding.top = narrower(window.kernel_rows);
  window.padding.left = narrower(window.kernel_cols);
  window.padding.bottom = narrower(window.kernel_rows);
  window.padding.right = narrower(window.kernel_cols);
  window.height = between(random, 5, 9);
  window.width = between(random, 5, 9);
  of.groups = between(random, 1, 5);
  const std::uint32_t ins = between(random, 1, 3), outs = between(random, 1, 3);
  window.channels = of.groups * ins;
  of.linear.inputs = static_cast<std::uint32_t>(window.pixels() * ins);
  of.linear.outputs = of.groups * outs;
  for (const std::uint8_t byte :
       test::random_bytes(random, std::size_t{of.linear.inputs} * of.linear.outputs)) {
    of.linear.weight.edit().push_back(static_cast<std::int8_t>(byte));
  }
  of.linear.bias = test::random_values(random, of.linear.outputs, 9000);
  // Factors that are powers of two.
  for (std::uint32_t o = 0; o < of.linear.outputs; ++o) {
    of.linear.factor.push_back({1, static_cast<std::int8_t>(between(random, 6, 9))});
  }
  of.range = between(random, 0, 1) == 0 ? hw::IntRange{0, 127} : hw::IntRange{-127, 127};
  GraphBuilder builder("convolution");
  Tensor picture;
  picture.name = "picture";
  picture.rows = window.height * window.width;
  picture.cols = window.channels;
  picture.kind = Tensor::Kind::kInput;
  const View in = builder.whole(builder.add_tensor(std::move(picture)));
  const View out = add_convolution(builder, "conv", in, of, hw::Rounding::kFloor);
  builder.tensor(out.tensor).kind = Tensor::Kind::kOutput;
  made.graph = std::move(builder).take();
  made.picture =
      test::random_values(random, std::size_t{window.height} * window.width * window.channels, 127);
  return made;
}

/// By definition: output o at (y, x) is the sum over its group's channels and the window's pixels.
std::vector<std::int32_t> by_definition(const ConvolutionCase& of) {
  const hw::Window& window = of.convolution.window;
  const IntegerLinear& linear = of.convolution.linear;
  const std::uint32_t groups = of.convolution.groups;
  const std::uint32_t ins = window.channels / groups, outs = linear.outputs / groups;
  std::vector<std::int32_t> result;
  for (std::uint32_t y = 0; y < window.out_height(); ++y) {
    for (std::uint32_t x = 0; x < window.out_width(); ++x) {
      for (std::uint32_t o = 0; o < linear.outputs; ++o) {
        std::int64_t sum = linear.bias[o];
        for (std::uint32_t i = 0; i < window.kernel_rows; ++i) {
          for (std::uint32_t j = 0; j < window.kernel_cols; ++j) {
            const int py = static_cast<int>(y * window.stride + i) - window.padding.top;
            const int px = static_cast<int>(x * window.stride + j) - window.padding.left;
            if (py < 0 || px < 0 || py >= static_cast<int>(window.height) ||
                px >= static_cast<int>(window.width)) {
              continue;
            }
            for (std::uint32_t c = 0; c < ins; ++c) {
              const std::size_t pixel = static_cast<std::size_t>(py) * window.width + px;
              const std::size_t weight =
                  std::size_t{o} * linear.inputs + (i * window.kernel_cols + j) * ins + c;
              sum += of.picture[pixel * window.channels + o / outs * ins + c] *
                     std::int32_t{linear.weight[weight]};
            }
          }
        }
        const auto scaled = static_cast<std::int32_t>(sum >> linear.factor[o].shift);
        result.push_back(std::clamp(scaled, static_cast<std::int32_t>(of.convolution.range.lo),
                                    static_cast<std::int32_t>(of.convolution.range.hi)));
      }
    }
  }
  return result;
}

TEST(Convolution, IsWhatItsDefinitionSays) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const ConvolutionCase of = random_case(random);
    const std::vector<std::int32_t> expected = by_definition(of);
    for (const bool fast : {false, true}) {
      Reference reference(of.graph, {fast, false});
      reference.set_input("picture", of.picture);
      reference.run();
      ASSERT_EQ(reference.values("conv.requantise"), expected) << i;
    }
    const hw::Window& window = of.convolution.window;
    EXPECT_EQ(count_macs(of.graph),
              window.rows() * of.convolution.linear.inputs * of.convolution.linear.outputs)
        << "zeros beside the blocks of groups do not count";
  }
}

TEST(Convolution, MaximumAndSumUnderAWindow) {
  // 3 x 3 pixels of two channels.
  const std::vector<std::int32_t> picture = {-1, 10, -2, 20, -3, 30, -4, 40, -5,
                                             50, -6, 60, -7, 70, -8, 80, -9, 90};
  for (const hw::Gather gather : {hw::Gather::kMaximum, hw::Gather::kSum}) {
    GraphBuilder builder("pooling");
    const View in = builder.whole(
        builder.add_tensor({"picture", 9, 2, hw::DType::kS8, Tensor::Kind::kInput, {}, 0.0}));
    const hw::Window window{gather, 2, 2, 2, hw::Padding::on_all_sides(1), 3, 3, 2};
    const View out = builder.pooling("pool", in, window, clamp_stage(16), hw::DType::kS32);
    builder.tensor(out.tensor).kind = Tensor::Kind::kOutput;
    const Graph graph = std::move(builder).take();
    Reference reference(graph);
    reference.set_input("picture", picture);
    reference.run();
    const std::vector<std::int32_t> expected =
        gather == hw::Gather::kSum ? std::vector<std::int32_t>{-1, 10, -5, 50, -11, 110, -28, 280}
                                   : std::vector<std::int32_t>{-1, 10, -2, 30, -4, 70, -5, 90};
    EXPECT_EQ(reference.values("pool"), expected);
  }
}

TEST(Convolution, GroupsThatDoNotDivideAreRefused) {
  Random random(3);
  ConvolutionCase of = random_case(random);
  of.convolution.groups = 64;
  GraphBuilder builder("bad");
  const View in = builder.whole(
      builder.add_tensor({"picture", 81, 3, hw::DType::kS8, Tensor::Kind::kInput, {}, 0.0}));
  expect_contains(input_error_of([&] {
                    add_convolution(builder, "conv", in, of.convolution, hw::Rounding::kFloor);
                  }),
                  "conv: 64 groups of");
}

}  // namespace
}  // namespace systole::model

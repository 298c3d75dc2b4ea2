#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"
#include "hw/number/int4.h"
#include "hw/program/window.h"
#include "model/build/convolution_nodes.h"
#include "model/graph/stages.h"
#include "support/network/encoder_run.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"

/// Networks of convolutions and poolings of any shape.
namespace systole::test {

/// The same on all sides or, in two of three, any.
inline hw::Padding random_padding(Random& random) {
  const auto side = [&random] { return static_cast<std::uint8_t>(between(random, 0, 3)); };
  hw::Padding padding = hw::Padding::on_all_sides(side());
  if (between(random, 0, 2) == 0) return padding;
  padding.left = side();
  padding.bottom = side();
  padding.right = side();
  return padding;
}

/// Over the picture of `window`, gathering what it does.
inline hw::Window random_window(Random& random, hw::Window window) {
  for (;;) {
    window.kernel_rows = static_cast<std::uint16_t>(between(random, 1, 7));
    window.kernel_cols = between(random, 0, 2) == 0
                             ? static_cast<std::uint16_t>(between(random, 1, 7))
                             : window.kernel_rows;
    window.stride = static_cast<std::uint16_t>(between(random, 1, 3));
    window.padding = random_padding(random);
    try {
      hw::check_window(window);
      return window;
    } catch (const hw::InputError&) {
      continue;
    }
  }
}

/// Two or three layers, each a convolution with groups or without, a residual block or a pooling.
/// `int4`: weights from -8 to 7, and results of convolutions.
inline Workload random_convolutions(std::uint64_t seed, hw::Int4Operands int4 = {}) {
  Random random(seed);
  model::GraphBuilder builder("network " + std::to_string(seed));
  hw::Window at;  // the picture: its sides and channels
  at.height = between(random, 3, 12);
  at.width = between(random, 3, 12);
  at.channels = between(random, 1, 24);
  model::Tensor picture;
  picture.name = "picture";
  picture.rows = at.height * at.width;
  picture.cols = at.channels;
  picture.kind = model::Tensor::Kind::kInput;
  Workload workload;
  workload.inputs.push_back(random_bytes(random, picture.bytes()));
  model::View view = builder.whole(builder.add_tensor(std::move(picture)));
  const auto convolve = [&](const std::string& name, const hw::Window& window,
                            std::uint32_t outputs, std::uint32_t groups) {
    model::IntegerConvolution of;
    of.window = window;
    of.groups = groups;
    of.linear.inputs = static_cast<std::uint32_t>(window.cols() / groups);
    of.linear.outputs = outputs;
    for (const std::uint8_t byte : random_bytes(random, std::size_t{of.linear.inputs} * outputs)) {
      const auto weight = static_cast<std::int8_t>(byte);
      of.linear.weight.edit().push_back(static_cast<std::int8_t>(int4.b ? weight / 16 : weight));
    }
    of.linear.int4 = int4.b;
    of.linear.bias = random_values(random, outputs, 20000);
    for (std::uint32_t o = 0; o < outputs; ++o) {
      of.linear.factor.push_back({static_cast<std::int32_t>(between(random, 20000, 32000)), 24});
    }
    if (between(random, 0, 1) == 0) of.range = {0, 127};
    if (int4.a) {
      of.range = {std::max<std::int64_t>(of.range.lo, hw::kLeastInt4), hw::kLargestInt4};
    }
    return model::add_convolution(builder, name, view, of, hw::Rounding::kHalfUp);
  };
  const std::uint32_t layers = between(random, 2, 3);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const auto kind = between(random, 0, 3);
    if (kind == 0) at.gather = between(random, 0, 1) == 0 ? hw::Gather::kMaximum : hw::Gather::kSum;
    hw::Window window = random_window(random, at);
    at.gather = hw::Gather::kPatches;
    std::uint32_t outputs = at.channels;
    if (kind == 0) {
      const hw::Stage stage = model::requantise_stage({20000, 16}, 8, hw::Rounding::kHalfEven);
      view = builder.pooling(name, view, window, stage, hw::DType::kS8);
    } else if (kind == 1) {  // depthwise
      view = convolve(name, window, outputs, at.channels);
    } else if (kind == 2) {
      outputs = between(random, 1, 24);
      view = convolve(name, window, outputs, 1);
    } else {
      window.kernel_rows = window.kernel_cols = 3;
      window.stride = 1;
      window.padding = hw::Padding::on_all_sides(1);
      const model::View branch = convolve(name, window, outputs, 1);
      const model::View sum = builder.stage(
          name + ".residual", branch,
          model::add_tensor_stage(hw::DType::kS8, {}, model::kBranchBits, hw::Rounding::kHalfUp),
          hw::DType::kS32, {{}, view});
      view = builder.stage(name + ".sum", sum, model::clamp_stage(8), hw::DType::kS8);
    }
    at.height = static_cast<std::uint32_t>(window.out_height());
    at.width = static_cast<std::uint32_t>(window.out_width());
    at.channels = outputs;
  }
  builder.tensor(view.tensor).kind = model::Tensor::Kind::kOutput;
  workload.graph = std::move(builder).take();
  return workload;
}

}  // namespace systole::test

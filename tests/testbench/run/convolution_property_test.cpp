#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "model/build/convolution_nodes.h"
#include "model/seeded/seeded_resnet.h"
#include "support/network/encoder_run.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"

/// Networks of convolutions and poolings of any shape, on machines of any shape.
namespace systole::testbench {
namespace {

using model::View;
using test::between;
using test::Random;
using test::Workload;

/// The same on all sides or, in two of three, any.
hw::Padding random_padding(Random& random) {
  const auto side = [&random] { return static_cast<std::uint8_t>(between(random, 0, 3)); };
  hw::Padding padding = hw::Padding::on_all_sides(side());
  if (between(random, 0, 2) == 0) return padding;
  padding.left = side();
  padding.bottom = side();
  padding.right = side();
  return padding;
}

/// Over the picture of `window`, gathering what it does.
hw::Window random_window(Random& random, hw::Window window) {
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
Workload random_network(std::uint64_t seed) {
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
  workload.inputs.push_back(test::random_bytes(random, picture.bytes()));
  View view = builder.whole(builder.add_tensor(std::move(picture)));
  const auto convolve = [&](const std::string& name, const hw::Window& window,
                            std::uint32_t outputs, std::uint32_t groups) {
    model::IntegerConvolution of;
    of.window = window;
    of.groups = groups;
    of.linear.inputs = static_cast<std::uint32_t>(window.cols() / groups);
    of.linear.outputs = outputs;
    for (const std::uint8_t byte :
         test::random_bytes(random, std::size_t{of.linear.inputs} * outputs)) {
      of.linear.weight.push_back(static_cast<std::int8_t>(byte));
    }
    of.linear.bias = test::random_values(random, outputs, 20000);
    for (std::uint32_t o = 0; o < outputs; ++o) {
      of.linear.factor.push_back({static_cast<std::int32_t>(between(random, 20000, 32000)), 24});
    }
    if (between(random, 0, 1) == 0) of.range = {0, 127};
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
      const View branch = convolve(name, window, outputs, 1);
      const View sum = builder.stage(
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

constexpr std::uint64_t kNetworks = 300;

/// A machine that is large enough. Without searches, which take most of the time and differ in the
/// tiles alone.
std::pair<hw::Machine, mapper::Mapping> random_fit(Random& random, const model::Graph& graph) {
  for (;;) {
    hw::Machine machine = test::random_machine(random);
    if (machine.mapper.strategy == hw::MappingStrategy::kSearch) {
      machine.mapper.strategy = hw::MappingStrategy::kCost;
    }
    try {
      return {machine, mapper::map_graph(graph, machine)};
    } catch (const hw::InputError&) {
      continue;  // too small
    }
  }
}

class ConvolutionPropertyTest : public test::SystemCTest {};

TEST_F(ConvolutionPropertyTest, AnyNetworkOnAnyMachineHasTheReferencesBits) {
  double worst = 0, sum = 0;
  int count = 0, reduced = 0, patches = 0, with_residual = 0, uneven = 0;
  for (std::uint64_t seed = 0; seed < kNetworks && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Workload workload = random_network(seed);
    Random random(seed);
    const auto [machine, mapping] = random_fit(random, workload.graph);
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    EXPECT_EQ(result.check.operators, mapping.program.operators.size());
    EXPECT_LE(result.bounds.front(), static_cast<double>(result.cycles.front()));
    for (const hw::Command& command : mapping.program.commands) {
      const auto* const load = command.as<hw::cmd::Load>();
      if (load == nullptr || !load->window) continue;
      ++(load->window->window.gather == hw::Gather::kPatches ? patches : reduced);
      const hw::Padding& padding = load->window->window.padding;
      uneven += padding != hw::Padding::on_all_sides(padding.top) ? 1 : 0;
    }
    for (const mapper::Group& group : mapping.groups) {
      with_residual += group.window && !group.tensors.empty() ? 1 : 0;
    }
    const double ratio =
        static_cast<double>(mapping.expected_cycles) / static_cast<double>(result.cycles.front());
    worst = std::max(worst, std::abs(std::log(ratio)));
    sum += std::abs(std::log(ratio));
    ++count;
    if (seed % 10 != 0) continue;
    options.check = options.functional = false;
    EXPECT_EQ(workload.simulate(mapping, machine, options).cycles, result.cycles)
        << "values take no time";
  }
  EXPECT_GT(patches, 2000);
  EXPECT_GT(reduced, 100);
  EXPECT_GT(uneven, 1000);
  EXPECT_GT(with_residual, 30) << "additions in the chain of a convolution";
  // These networks are small, and much of their time is not that of any unit.
  RecordProperty("mean_deviation", std::to_string(std::exp(sum / count) - 1));
  RecordProperty("worst_deviation", std::to_string(std::exp(worst) - 1));
  EXPECT_LT(std::exp(sum / count), 1.35);
}

TEST_F(ConvolutionPropertyTest, AResNetRunsOnThePresetsThatHaveItsUnits) {
  model::ResNetShape shape = *model::find_resnet_shape("resnet-50");
  shape = shape.first(4);
  shape.image = 32;
  shape.width = 16;
  for (const char* const name : {"gemmini", "transformer"}) {
    const hw::Machine machine = hw::find_machine(name);
    Workload workload;
    workload.graph = model::make_seeded_resnet("resnet", shape, 1, machine.datapath, true);
    std::vector<std::uint8_t> picture;
    for (const std::int32_t value : model::seeded_picture(shape, 2)) {
      picture.push_back(static_cast<std::uint8_t>(value));
    }
    workload.inputs.push_back(std::move(picture));
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << name << ": " << result.check.first;
    EXPECT_EQ(result.check.operators, mapping.program.operators.size());
    EXPECT_LE(result.bounds.front(), static_cast<double>(result.cycles.front()));
    const auto residual_groups =
        std::count_if(mapping.groups.begin(), mapping.groups.end(), [](const mapper::Group& group) {
          return group.matmul() == nullptr && !group.tensors.empty();
        });
    EXPECT_EQ(residual_groups, std::string(name) == "gemmini" ? 4 : 0)
        << "Gemmini's library adds residuals in separate calls";
  }
}

}  // namespace
}  // namespace systole::testbench

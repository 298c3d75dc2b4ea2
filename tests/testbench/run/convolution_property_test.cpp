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
#include "model/seeded/seeded_resnet.h"
#include "support/network/encoder_run.h"
#include "support/network/random_convolutions.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"

/// Networks of convolutions and poolings of any shape, on machines of any shape.
namespace systole::testbench {
namespace {

using test::Random;
using test::Workload;

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
    const Workload workload = test::random_convolutions(seed);
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

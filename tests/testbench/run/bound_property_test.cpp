#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "bench/mapping_grid.h"
#include "hw/description/machine_text.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/network/run_subject.h"
#include "testbench/run/simulation.h"

/// No simulation is below the lower bound: networks of mapping_bench on machines of any shape.
namespace systole::testbench {
namespace {

/// What a layer or two of a network take, over the bound. Nothing where it does not fit.
std::optional<double> over_bound(const bench::Network& network, const hw::Machine& machine,
                                 std::uint32_t layers) {
  RunRequest request;
  request.model = network.model;
  request.limit = network.past == 0 ? 1 : 0;  // of a decoder the length says it
  request.functional = false;
  if (network.model != "vit65") request.size.layers = layers;
  if (network.length != 0) request.size.length = network.length;
  request.size.decode = network.past != 0;
  if (network.past != 0) request.size.past = network.past;
  try {
    const RunSubject subject(request, machine);
    SimulationOptions options;
    options.functional = false;
    options.next_step = subject.next_step();
    test::fresh_kernel();
    const SimulationResult result =
        simulate(subject.graph(), subject.mapping(), machine, tlm_model::make_models(machine),
                 subject.inputs(), options);
    return static_cast<double>(result.cycles.front()) / result.bounds.front();
  } catch (const hw::InputError&) {
    return std::nullopt;
  }
}

constexpr int kMachines = 3;  ///< per network

/// One network on one machine: a process each, side by side.
class BoundPropertyTest : public test::SystemCTest, public testing::WithParamInterface<int> {};

TEST_P(BoundPropertyTest, NoNetworkIsFasterOnAnyMachine) {
  const auto network = static_cast<std::size_t>(GetParam() / kMachines);
  // What the second layer of a long one adds, that of a short one shows.
  const bool is_short = bench::kNetworks[network].length <= 128;
  const std::uint32_t layers = is_short && GetParam() % kMachines == 0 ? 2 : 1;
  test::Random random(static_cast<std::uint64_t>(GetParam()));
  for (;;) {
    const hw::Machine machine = test::random_network_machine(random);
    const std::optional<double> ratio = over_bound(bench::kNetworks[network], machine, layers);
    if (!ratio) continue;  // it does not fit
    EXPECT_GE(*ratio, 1.0) << hw::to_toml(machine);
    return;
  }
}

std::string name_of_case(const testing::TestParamInfo<int>& info) {
  std::string name = bench::kNetworks.at(info.index / kMachines).label;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + std::to_string(info.index % kMachines);
}

INSTANTIATE_TEST_SUITE_P(Networks, BoundPropertyTest,
                         testing::Range(0, kMachines* static_cast<int>(bench::kNetworks.size())),
                         name_of_case);

}  // namespace
}  // namespace systole::testbench

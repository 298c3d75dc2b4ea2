#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "analysis/lower_bound.h"
#include "bench/mapping_grid.h"
#include "hw/error.h"
#include "hw/machine_text.h"
#include "support/fresh_kernel.h"
#include "support/random_machine.h"
#include "support/systemc_test.h"
#include "testbench/run_subject.h"
#include "testbench/simulation.h"

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

class BoundPropertyTest : public test::SystemCTest {};

TEST_F(BoundPropertyTest, NoNetworkIsFasterOnAnyMachine) {
  constexpr int kMachines = 4;
  test::Random random(9);
  for (const bench::Network& network : bench::kNetworks) {
    for (int done = 0; done < kMachines;) {
      const hw::Machine machine = test::random_network_machine(random);
      const std::optional<double> ratio = over_bound(network, machine, done % 3 == 0 ? 2 : 1);
      if (!ratio) continue;
      ++done;
      EXPECT_GE(*ratio, 1.0) << network.label << " on\n" << hw::to_toml(machine);
    }
  }
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "hw/description/machine_file.h"
#include "model/seeded/shapes.h"
#include "support/network/encoder_run.h"
#include "support/tlm/systemc_test.h"
#include "tlm/dma/dma_port.h"

/// How much the results depend on DMA ports that run ahead of simulated time.
namespace systole::testbench {
namespace {

using test::Workload;

double change(const Workload& workload, const std::string& machine_name) {
  const hw::Machine machine = hw::find_machine(machine_name);
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  const auto exact = static_cast<double>(workload.cycles(mapping, machine, 0));
  const auto ahead = static_cast<double>(workload.cycles(mapping, machine));
  return std::abs(ahead / exact - 1.0);
}

class QuantumTest : public test::SystemCTest {};

// A port that is ahead asks the memory for a run of requests before the others get a turn, which
// saves conflicts between open rows; on a bus that is never free it also keeps them waiting.
TEST_F(QuantumTest, HardlyMovesTheCyclesOfAnEncoderLayer) {
  model::EncoderShape shape = model::find_shape("bert-base");
  shape.layers = 1;
  const Workload layer{model::make_seeded_encoder("layer", shape, 128, 1, {{}, true}), {}};
  EXPECT_LT(change(layer, "gemmini"), 0.01);
  EXPECT_LT(change(layer, "transformer"), 0.03);
}

TEST_F(QuantumTest, MovesTheCyclesOfASmallMachineByAFewPercent) {
  const Workload small = test::encoder_workload({1, 32, 2, 64, true}, 19, 1);
  EXPECT_LT(change(small, "gemmini"), 0.02) << "the program's reads meet those of the loads";
  EXPECT_LT(change(small, "transformer"), 0.05) << "operators in turns meet in the memory";
  EXPECT_LT(change(small, "tiny"), 0.12);
}

TEST_F(QuantumTest, RepeatsExactly) {
  const Workload small = test::encoder_workload({1, 32, 2, 64, true}, 19, 1);
  const hw::Machine machine = hw::find_machine("tiny");
  const mapper::Mapping mapping = mapper::map_graph(small.graph, machine);
  const std::uint64_t cycles = small.cycles(mapping, machine);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(small.cycles(mapping, machine), cycles);
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "model/build/encoder_graph.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "support/network/encoder_run.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"
#include "tlm/system.h"

/// What holds for every machine, whatever its sizes and clocks.
namespace systole::testbench {
namespace {

using test::Random;
using test::Workload;

Workload small_encoder() { return test::encoder_workload({1, 32, 2, 64, true}, 19, 2); }

Workload small_vit() {
  Workload workload{model::make_vit_graph(model::load_integer_vit(model::find_model("vit17"))), {}};
  Random random(3);
  std::vector<std::uint8_t> pixels =
      test::random_bytes(random, workload.graph.tensors[input_tensor(workload.graph)].bytes());
  for (std::uint8_t& pixel : pixels) pixel &= 0x7f;
  workload.inputs.push_back(std::move(pixels));
  return workload;
}

/// Bytes of the results of all operators.
std::uint64_t result_bytes(const hw::Program& program) {
  std::uint64_t bytes = 0;
  for (const hw::Operator& op : program.operators) {
    bytes += std::uint64_t{op.rows} * op.cols * hw::bytes_of(op.type);
  }
  return bytes;
}

/// Time counts from the start of each inference to its end, whatever the host does besides.
void expect_totals_of_inferences(const std::vector<hw::BlockReport>& accounts,
                                 const SimulationResult& result, const hw::Machine& machine) {
  const auto cycles = std::accumulate(result.cycles.begin(), result.cycles.end(), std::uint64_t{0});
  EXPECT_LT(cycles, result.total_cycles);
  const double seconds = static_cast<double>(cycles) / (machine.core.clock_mhz * 1e6);
  const auto inferences = static_cast<double>(result.cycles.size());
  for (const hw::BlockReport& block : accounts) {
    const std::string owner = block.name.substr(0, block.name.find('.'));
    if (owner == "host") continue;          // whose clock is its own
    if (owner == "bus" || owner == "l2") {  // from clock edge to clock edge
      EXPECT_NEAR(static_cast<double>(block.time->total), seconds * machine.bus.clock_mhz * 1e6,
                  2.0 * inferences)
          << block.name;
    } else if (owner == "dram") {
      // A cache or a write queue may still move data when an inference ends or begins.
      const double lines = machine.l2.kib == 0 && machine.dram.write_queue == 0 ? 0.0 : 1e-6;
      EXPECT_NEAR(static_cast<double>(block.time->total), seconds * 1e12,
                  (2.0 + lines * 1e12) * inferences)
          << block.name;
    } else {
      EXPECT_EQ(block.time->total, cycles) << block.name;
    }
  }
}

void expect_conserved(const SimulationResult& result, const hw::Machine& machine) {
  const std::vector<hw::BlockReport> accounts = hw::accounts_of(result.blocks);
  std::vector<std::string> names;
  for (const hw::BlockReport& block : accounts) {
    names.push_back(block.name);
    EXPECT_EQ(block.time->busy + block.time->stalled_total() + block.time->idle, block.time->total)
        << block.name;
    EXPECT_GT(block.time->busy, 0U) << block.name;
  }
  for (const char* name : {"command_processor", "load", "array", "store", "bus.request",
                           "bus.read_data", "bus.write_data", "dram.channel0"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  expect_totals_of_inferences(accounts, result, machine);
}

class PropertyTest : public test::SystemCTest {
 protected:
  /// Runs the workload, checked, on random machines and without values as well.
  static void expect_the_same_everywhere(const Workload& workload, std::uint64_t seed,
                                         int machines) {
    const auto expected = test::expected_outputs(workload);
    Random random(seed);
    std::vector<std::pair<hw::Machine, mapper::Mapping>> fits;
    for (int i = 0; i < machines; ++i) fits.push_back(test::random_fit(random, workload.graph));
    for (const auto& [machine, mapping] : fits) {
      SCOPED_TRACE(hw::to_toml(machine));
      SimulationOptions options;
      options.check = true;
      const SimulationResult values = workload.simulate(mapping, machine, options);
      EXPECT_EQ(values.check.mismatches, 0U) << values.check.first;
      EXPECT_EQ(values.check.operators, mapping.program.operators.size() * workload.inputs.size());
      EXPECT_EQ(values.check.bytes, result_bytes(mapping.program) * workload.inputs.size());
      EXPECT_EQ(values.outputs, expected);
      for (std::size_t run = 0; run < values.cycles.size(); ++run) {
        EXPECT_GE(static_cast<double>(values.cycles[run]), values.bounds.at(run));
      }
      expect_conserved(values, machine);

      options.functional = false;
      const SimulationResult timing = workload.simulate(mapping, machine, options);
      EXPECT_EQ(timing.cycles, values.cycles);
      EXPECT_EQ(timing.total_cycles, values.total_cycles);
      expect_conserved(timing, machine);
      if (HasFailure()) return;
    }
  }
};

TEST_F(PropertyTest, AnEncoderGivesTheSameBitsOnEveryMachine) {
  expect_the_same_everywhere(small_encoder(), 1, 64);
}

TEST_F(PropertyTest, AVisionModelGivesTheSameBitsOnEveryMachine) {
  expect_the_same_everywhere(small_vit(), 2, 24);
}

/// A post-op unit that flips the lowest bit of one byte of its output, once.
class FaultyPostop final : public hw::PostopEngine {
 public:
  FaultyPostop(std::uint32_t lanes, std::uint64_t call) : model_(lanes), faulty_call_(call) {}
  void apply(const hw::Chain& chain, const hw::ChainOperands& operands) override {
    model_.apply(chain, operands);
    if (calls_++ == faulty_call_) *static_cast<std::uint8_t*>(operands.out) ^= 1;
  }
  hw::ChainCycles cycles(const hw::Chain& chain, std::uint64_t rows, std::uint64_t cols) override {
    return model_.cycles(chain, rows, cols);
  }

 private:
  hw::PostopModel model_;
  std::uint64_t faulty_call_;
  std::uint64_t calls_ = 0;
};

TEST_F(PropertyTest, TheCheckNoticesAFlippedBitInAWeight) {
  const hw::Machine machine = hw::find_machine("transformer");
  const Workload workload = small_encoder();
  mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  SimulationOptions options;
  options.check = true;
  ASSERT_EQ(workload.simulate(mapping, machine, options).check.mismatches, 0U);
  Random random(4);
  int noticed = 0;
  for (std::size_t piece = 0; piece + 1 < mapping.image.size(); ++piece) {  // the last: commands
    std::vector<std::uint8_t>& bytes = mapping.image[piece].bytes.edit();
    std::uint8_t& byte = bytes[random() % bytes.size()];
    byte ^= 0x40;
    const CheckResult check = workload.simulate(mapping, machine, options).check;
    if (check.mismatches > 0) ++noticed;
    EXPECT_EQ(check.mismatches > 0, !check.first.empty());
    byte ^= 0x40;
  }
  // Some bytes are padding, and a saturated or rounded result may hide a wrong weight.
  EXPECT_GE(noticed, static_cast<int>(mapping.image.size()) / 2);
}

TEST_F(PropertyTest, TheCheckNoticesAFlippedBitInAnyResult) {
  const hw::Machine machine = hw::find_machine("transformer");
  const Workload workload = small_encoder();
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  SimulationOptions options;
  options.check = true;
  const auto run = [&](std::uint64_t call) {
    tlm_model::Engines engines = tlm_model::make_models(machine);
    engines.postop = std::make_unique<FaultyPostop>(machine.postop.lanes, call);
    return workload.simulate(mapping, machine, std::move(engines), options).check;
  };
  // Every command of the store unit calls the engine at least once in each of two inferences.
  for (std::uint64_t call = 0; call < 16; ++call) {
    const CheckResult check = run(call);
    EXPECT_GE(check.mismatches, 1U) << call;
    EXPECT_NE(check.first.find("inference 0, blocks.0."), std::string::npos) << check.first;
  }
  EXPECT_EQ(run(1'000'000).mismatches, 0U) << "a fault that never comes";
}

}  // namespace
}  // namespace systole::testbench

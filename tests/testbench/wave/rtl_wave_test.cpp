/// Blocks in RTL in the waveform of their system: what they do, and when, against the signals of
/// the model in the same file.
#include "support/tlm/rtl_wave.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/description/machine_file.h"
#include "model/float/gpt.h"
#include "support/network/attention_run.h"
#include "support/network/vit_run.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/fst_reader.h"
#include "support/tlm/systemc_test.h"
#include "testbench/generation/generation.h"
#include "testbench/run/rtl_blocks.h"
#include "tlm/common/wave_states.h"

namespace systole::testbench {
namespace {

using test::expect_a_clock;
using test::operations;
using test::port_of;
using test::rises;
using tlm_model::wave_state;

class RtlWaveTest : public test::SystemCTest {
 protected:
  struct Run {
    SimulationResult result;
    test::Vcd vcd;
    RtlReport report;
  };
  [[nodiscard]] Run run(const test::VitRun& vit, const std::vector<std::string>& blocks,
                        bool functional = true, std::uint64_t from_cycle = 0) const {
    hw::Machine machine = vit.machine;
    for (const std::string& block : blocks) swap_for_rtl(machine, block);
    SimulationOptions options;
    options.functional = functional;
    options.wave.path = directory.path("run.fst");
    options.wave.from_cycle = from_cycle;
    Run run;
    RtlWaves waves(options.wave.path, machine);
    tlm_model::Engines engines = make_engines(machine, waves.options(), run.report);
    test::fresh_kernel();
    run.result =
        simulate(vit.network.graph, vit.mapping, machine, std::move(engines), vit.inputs, options);
    waves.write();
    run.vcd = test::read_fst(options.wave.path);
    for (const auto& [block, counts] : run.report) EXPECT_EQ(counts.mismatches, 0U) << block;
    return run;
  }

  TempDirectory directory;
};

TEST_F(RtlWaveTest, TheArraysProductsHaveTheCyclesOfTheirCommands) {
  for (const char* name : {"tiny", "transformer"}) {
    const test::VitRun vit(name);
    const Run run = this->run(vit, {"systolic_array"}, false);
    const std::uint64_t period = 1'000'000 / vit.machine.core.clock_mhz;
    expect_a_clock(run.vcd, "systolic_array", period);
    std::map<std::uint64_t, const tlm_model::CommandTrace*> commands;  // by their begin
    for (const tlm_model::CommandTrace& trace : run.result.traces) {
      if (trace.unit == hw::Unit::kCompute) commands[trace.started * period] = &trace;
    }
    const std::vector<std::uint64_t> begins = operations(run.vcd, "systolic_array");
    EXPECT_GT(begins.size(), commands.size() / 4);
    const auto command_at = [&](std::uint64_t time) {
      return std::prev(commands.upper_bound(time))->second;
    };
    std::size_t exact = 0;
    for (const std::uint64_t begin : begins) {
      const tlm_model::CommandTrace& command = *command_at(begin);
      // Weights that nothing hides go in before the RTL's first cycle, as fast as banks serve them.
      const std::uint64_t stalled =
          std::accumulate(command.stalled.begin(), command.stalled.end(), std::uint64_t{0});
      EXPECT_LE(begin, (command.started + vit.machine.array.rows + stalled) * period);
      exact += begin == command.started * period ? 1 : 0;
    }
    EXPECT_GT(exact, begins.size() / 3);
    const std::vector<std::uint64_t> streams =
        rises(run.vcd, port_of("systolic_array", "act_valid_i"));
    EXPECT_GE(streams.size(), begins.size());
    for (const std::uint64_t time : streams) {
      const tlm_model::CommandTrace& command = *command_at(time);
      EXPECT_LT(time, command.released * period);
      EXPECT_EQ(run.vcd.at("system.core.array.command", time), command.index);
      EXPECT_NE(run.vcd.at("system.core.array.state", time), wave_state("idle"));
    }
    // The last row of sums leaves when the command is complete, but for what the accumulator takes,
    // and for what the model adds for conflicts of banks. Registers change in the middle of a
    // cycle.
    exact = 0;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const std::uint64_t next = i + 1 < begins.size() ? begins[i + 1] : run.vcd.end;
      const tlm_model::CommandTrace& command = *command_at(begins[i]);
      std::uint64_t last = 0;
      for (const auto& change : run.vcd.changes(port_of("systolic_array", "result_valid_o"))) {
        if (change.time >= begins[i] && change.time <= next) last = change.time;
      }
      const std::uint64_t leaves =
          (command.completed - hw::kMatmulRegisterCycles - hw::kAccumulatorWriteCycles) * period +
          period / 2;
      EXPECT_LE(last, leaves);
      exact += last == leaves ? 1 : 0;
    }
    EXPECT_GT(exact, begins.size() / 6);
  }
}

TEST_F(RtlWaveTest, PostopBlocksWorkWhileTheModelSaysSo) {
  const test::VitRun vit("tiny");
  std::vector<std::string> blocks = rtl_blocks(vit.machine);
  blocks.erase(std::find(blocks.begin(), blocks.end(), "systolic_array"));  // above
  const Run run = this->run(vit, blocks);
  const std::uint64_t period = 1'000'000 / vit.machine.core.clock_mhz;
  const std::map<std::string, std::string> commands = {
      {"requantizer", "store"},       {"postop_pipeline", "store"},
      {"i_gelu", "store.gelu"},       {"softmax_unit", "store.exponential"},
      {"i_exp", "store.exponential"}, {"layernorm_unit", "store.norm"},
      {"i_sqrt", "store.norm"},
  };
  std::map<std::uint64_t, const tlm_model::CommandTrace*> stores;
  for (const tlm_model::CommandTrace& trace : run.result.traces) {
    if (trace.unit == hw::Unit::kStore) stores[trace.started * period] = &trace;
  }
  for (const auto& [block, unit] : commands) {
    expect_a_clock(run.vcd, block, period);
    const std::vector<std::uint64_t> begins = operations(run.vcd, block);
    EXPECT_LE(begins.size(), run.report.at(block).operations) << block;
    std::size_t first_rows = 0;
    for (const std::uint64_t begin : begins) {
      const tlm_model::CommandTrace& command = *std::prev(stores.upper_bound(begin))->second;
      EXPECT_LT(begin, command.released * period) << block;
      first_rows += begin == command.started * period ? 1 : 0;
    }
    EXPECT_GT(first_rows, 0U) << block;
    const std::vector<std::uint64_t> valid = rises(run.vcd, port_of(block, "valid_i"));
    EXPECT_GE(valid.size(), begins.size()) << block;
    for (const std::uint64_t time : valid) {
      const tlm_model::CommandTrace& command = *std::prev(stores.upper_bound(time))->second;
      EXPECT_EQ(run.vcd.at("system.core." + unit + ".command", time), command.index)
          << block << " at " << time;
    }
  }
  const auto uses = [&](const char* port, std::initializer_list<const char*> units) {
    const auto times = rises(run.vcd, port_of("accumulator_sram", port));
    EXPECT_FALSE(times.empty()) << port;
    for (const std::uint64_t time : times) {
      EXPECT_TRUE(std::any_of(
          units.begin(), units.end(),
          [&](const char* unit) {
            return run.vcd.at(std::string("system.core.") + unit + ".command", time).has_value();
          }))
          << port << " at " << time;
    }
  };
  uses("write_valid_i", {"array", "load"});
  uses("read_valid_i", {"store"});
}

// Whatever is recorded, the file and its view name the same signals.
TEST_F(RtlWaveTest, TheViewShowsTheBlocksSignals) {
  const test::VitRun vit("tiny");
  const Run run = this->run(vit, {"softmax_unit"});
  EXPECT_EQ(directory.names().size(), 2 + wave_tables().size() - 2);  // no files of the block
  const std::string view = read_file(directory.path("run.gtkw"));
  for (const char* line :
       {"-softmax_unit: RTL ports\n", "-softmax_unit: operation (model)\n",
        "rtl.softmax_unit.model.cycle[31:0]\n", "rtl.softmax_unit.dut.systole_softmax_unit.valid_i",
        "rtl.softmax_unit.dut.systole_softmax_unit.data_o[", "-Systolic array\n"}) {
    EXPECT_NE(view.find(line), view.npos) << line;
  }
}

TEST_F(RtlWaveTest, KeepsToTheWindow) {
  const test::VitRun vit("tiny");
  const Run whole = this->run(vit, {"requantizer"});
  const std::uint64_t from = whole.result.traces.back().started / 2;
  const Run piece = this->run(vit, {"requantizer"}, true, from);
  EXPECT_EQ(piece.vcd.begin, from * (1'000'000 / vit.machine.core.clock_mhz));
  EXPECT_EQ(piece.vcd.end, whole.vcd.end);
  for (const auto& [path, variable] : whole.vcd.variables) {
    for (const auto& change : variable.changes) {
      if (change.time < piece.vcd.begin) continue;
      ASSERT_EQ(piece.vcd.at(path, change.time), change.value) << path << " at " << change.time;
    }
    ASSERT_EQ(piece.vcd.at(path, piece.vcd.begin), whole.vcd.at(path, piece.vcd.begin)) << path;
  }
}

TEST_F(RtlWaveTest, AttentionLinesWorkWhileTheirEnginesAreBusy) {
  const hw::Machine plain = hw::find_machine("vitcod");
  const model::AttentionMask mask = test::synthetic_mask({2, 3, 45, 45}, 6);
  const AttentionWorkload workload = make_attention_workload(
      test::shape_of(mask, 20), test::split_by_cycles(mask, 20, plain), plain, true);
  hw::Machine machine = plain;
  WaveOptions wave;
  wave.path = directory.path("run.fst");
  for (const char* block : {"sparser_line", "denser_line"}) swap_for_rtl(machine, block);
  RtlReport report;
  RtlWaves waves(wave.path, machine);
  tlm_model::Engines engines = make_engines(machine, waves.options(), report);
  test::fresh_kernel();
  const AttentionResult result =
      simulate_attention(workload, machine, std::move(engines), true, wave);
  waves.write();
  EXPECT_EQ(result.check.mismatches, 0U);
  const test::Vcd vcd = test::read_fst(wave.path);
  for (const std::string engine : {"sparser", "denser"}) {
    expect_a_clock(vcd, engine + "_line", 1'000'000 / machine.core.clock_mhz);
    std::size_t sums = 0;
    for (const std::uint64_t time : operations(vcd, engine + "_line")) {
      EXPECT_EQ(vcd.at("system.core.attention." + engine + ".state", time), wave_state("busy"))
          << engine << " at " << time;
      const bool spmm = vcd.at(port_of(engine + "_line", "spmm_i"), time) == 1U;
      const auto state = vcd.at("system.core.attention.state", time);
      EXPECT_NE(state, wave_state(spmm ? "sddmm" : "spmm")) << engine << " at " << time;
      sums += spmm ? 1 : 0;
    }
    EXPECT_GT(sums, 0U) << engine;
  }
}

// Tokens are decoded as they arrive, and encoded as rows leave the post-op lanes.
TEST_F(RtlWaveTest, LinesThatMixHeadsWorkWhileTheModelSaysSo) {
  const test::VitRun vit("vitcod", 1, "vit65-sparse90-ae");
  const Run run = this->run(vit, {"head_mix_line"});
  expect_a_clock(run.vcd, "head_mix_line", 1'000'000 / vit.machine.core.clock_mhz);
  const std::vector<std::uint64_t> begins = operations(run.vcd, "head_mix_line");
  std::size_t decoding = 0, encoding = 0;
  for (const std::uint64_t time : begins) {
    const bool decodes =
        run.vcd.at("system.core.attention.decoder.state", time) == wave_state("busy");
    const bool encodes = run.vcd.at("system.core.store.encoder.state", time) == wave_state("busy");
    EXPECT_TRUE(decodes || encodes) << time;
    decoding += decodes ? 1 : 0;
    encoding += encodes ? 1 : 0;
  }
  EXPECT_GT(decoding, 10U);
  EXPECT_GT(encoding, 10U);
  const std::uint64_t operations_in_all = run.report.at("head_mix_line").operations;
  EXPECT_LE(begins.size(), operations_in_all);
  for (const std::uint64_t time : rises(run.vcd, port_of("head_mix_line", "in_valid_i"))) {
    EXPECT_TRUE(run.vcd.at("rtl.head_mix_line.model.cycle", time).has_value()) << time;
  }
}

TEST_F(RtlWaveTest, CoresOfARingHaveTheirOwn) {
  model::TextShape shape = model::gpt_shape("kjv");
  shape.encoder.layers = 1;
  shape.encoder.width = 128;
  shape.encoder.heads = 2;
  shape.encoder.hidden = 128;
  shape.vocabulary = 60;
  shape.positions = 64;
  const model::Gpt gpt = model::seeded_gpt("small", shape, 11);
  hw::Machine machine = hw::find_machine("dfx");
  machine.dfx.cores = 2;
  for (const std::string& block : generation_blocks()) swap_for_rtl(machine, block);
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.prompt = {3, 1};
  task.tokens = 1;
  task.wave.path = directory.path("ring.fst");
  test::fresh_kernel();
  const Generation generation = generate(machine, task);
  test::fresh_kernel();
  for (const auto& [block, counts] : generation.rtl) EXPECT_EQ(counts.mismatches, 0U) << block;
  const test::Vcd vcd = test::read_fst(task.wave.path);
  for (const std::string core : {"core0", "core1"}) {
    const std::map<std::string, std::string> units = {
        {"fp16_mul", "vector"}, {"fp16_add", "vector"}, {"mpu_tree", "matrix"}};
    for (const auto& [block, unit] : units) {
      expect_a_clock(vcd, core + "." + block, 5000);
      for (const std::uint64_t time : operations(vcd, core + "." + block)) {
        EXPECT_TRUE(vcd.at("system." + core + "." + unit + ".instruction", time).has_value())
            << core << " " << block << " at " << time;
      }
    }
    // A packet comes in over a link, then its operation is over.
    expect_a_clock(vcd, core + ".ring_router", 5000);
    const std::string other = core == "core0" ? "1" : "0";
    for (const std::uint64_t time : operations(vcd, core + ".ring_router")) {
      EXPECT_GT(*vcd.at("system.to_right" + other + ".bytes", time) +
                    *vcd.at("system.to_left" + other + ".bytes", time),
                0U);
    }
  }
}

}  // namespace
}  // namespace systole::testbench

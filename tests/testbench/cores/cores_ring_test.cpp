#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "model/float/gpt.h"
#include "support/network/core_balance.h"
#include "support/network/encoder_run.h"
#include "support/random/random_machine.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/fst_reader.h"
#include "support/tlm/systemc_test.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/cores/ring_beside.h"
#include "testbench/generation/generation.h"
#include "testbench/network/tensors.h"
#include "testbench/run/rtl_blocks.h"
#include "tlm/bus/bus_transaction.h"

/// A ring of FP16 cores beside tile cores, whose memory has the DDR of its cards.
namespace systole::testbench {
namespace {

using test::Random;
using test::Workload;

model::TextShape small_shape(std::uint32_t layers, std::uint32_t heads) {
  model::TextShape shape = model::gpt_shape("kjv");
  shape.encoder.layers = layers;
  shape.encoder.heads = heads;
  shape.encoder.width = 64 * heads;
  shape.encoder.hidden = 128;
  shape.vocabulary = 60;
  shape.positions = 64;
  return shape;
}

/// A system as the file has it, whose tile cores have the keys of `tile`.
hw::CoreSystem system_of(const hw::Machine& tile, std::size_t tiles, const std::string& ring) {
  const TempDirectory directory;
  std::string text = "base = 'transformer'\n";
  for (std::size_t i = 0; i < tiles; ++i) text += "[[core]]\n";
  text += "[[core]]\nkind = 'ring'\nddr_mib = 2\n" + ring;
  hw::CoreSystem system = hw::find_system(directory.write("system.toml", text));
  system.machine = tile;
  for (hw::CoreSite& core : system.cores) {
    if (!hw::is_ring(core)) {
      core.machine = tile;
      continue;
    }
    const std::uint32_t ddr = core.machine.dram.mib;
    core.machine.bus = tile.bus;
    core.machine.dram = tile.dram;
    core.machine.dram.mib = ddr;
  }
  return system;
}

struct CoresRing : public test::SystemCTest {
  /// What the system runs: inferences of the workload, and a text of `prompt` and `tokens`.
  struct Work {
    hw::CoreSystem all, tiles;
    CorePlan plan;
    model::Gpt gpt;
    RingPart ring;
  };
  std::unique_ptr<Work> work_of(const hw::CoreSystem& system, const model::TextShape& shape,
                                std::size_t prompt, std::uint32_t tokens) const {
    auto work = std::make_unique<Work>();
    work->all = system;
    work->tiles = hw::tiles_of(system);
    const CoreSubject subject{{std::shared_ptr<void>(), &workload.graph},
                              std::make_shared<mapper::Mapping>(mapper::map_graph(
                                  workload.graph, work->tiles.cores.front().machine))};
    work->plan =
        plan_batch(work->tiles, std::vector<CoreSubject>(work->tiles.cores.size(), subject),
                   workload.inputs.size());
    work->gpt = model::seeded_gpt("small", shape, 11);
    work->ring.site = hw::ring_of(work->all);
    work->ring.ddr = hw::ring_ddr(work->all, *work->ring.site);
    work->ring.task.shape = shape;
    work->ring.task.gpt = &work->gpt;
    for (std::uint32_t i = 0; i < prompt; ++i) work->ring.task.prompt.push_back((7 * i + 3) % 60);
    work->ring.task.tokens = tokens;
    return work;
  }
  CoresResult run(const Work& work, CoresOptions options) const {
    options.ring = &work.ring;
    test::fresh_kernel();
    return simulate(work.plan, workload.inputs, options);
  }

  const Workload workload = test::encoder_workload({1, 32, 2, 64, true}, 13, 6);
};

/// The text that the ring generates by itself, with a DDR on each card.
std::vector<std::uint32_t> tokens_alone(const hw::Machine& machine, GenerationTask task) {
  test::fresh_kernel();
  return generate(machine, task).tokens;
}

// Any tile cores, any number of cards, any clocks.
TEST_F(CoresRing, GivesTheBitsOfEachAloneAndAccountsForEveryCycle) {
  const auto expected = test::expected_outputs(workload);
  Random random(77);
  std::size_t slower = 0, cached = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    hw::Machine tile = test::random_fit(random, workload.graph).first;
    tile.dram.mib = 64;
    if (i % 4 < 2) {
      tile.l2.kib = 0;
    } else if (tile.l2.kib == 0) {
      tile.l2 = {};
      tile.l2.kib = 16;
    }
    cached += tile.l2.kib != 0 ? 1 : 0;
    tile.memory.model = hw::MemoryModel::kDram;
    const std::uint32_t cards = 1 + i % 3, heads = 1 + i % 2;
    const std::string ring = "dfx.cores = " + std::to_string(cards) + "\ncore.clock_mhz = " +
                             std::to_string(test::between(random, 100, 900)) +
                             (i % 2 == 0 ? "\n" : "\nuse = 'dfx-ideal'\n");
    SCOPED_TRACE(hw::to_toml(tile) + ring);
    const auto work = work_of(system_of(tile, 1 + i / 3, ring), small_shape(2, heads), 3, 3);
    // The row of the table of words that a token has hits or misses, or is where a write waits:
    // without values it is token 0.
    if (tile.l2.kib != 0 || tile.dram.write_queue != 0) {
      work->ring.task.sample = [](const auto&) { return 0U; };
    }
    CoresOptions options;
    options.check = true;
    const CoresResult result = run(*work, options);
    EXPECT_EQ(result.outputs, expected);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    ASSERT_TRUE(result.ring);
    EXPECT_EQ(result.ring->tokens, tokens_alone(work->ring.site->machine, work->ring.task));
    // One request, of which the rates of a report are.
    ASSERT_EQ(result.ring->requests.size(), 1U);
    EXPECT_EQ(result.ring->requests.front().end_ps, result.ring->total_ps);
    EXPECT_EQ(result.ring->requests.front().texts.front(), result.ring->tokens);
    EXPECT_GT(result.ring_check.operators, 2U);
    EXPECT_EQ(result.ring_check.mismatches, 0U) << result.ring_check.first;
    ASSERT_EQ(result.cores.size(), work->tiles.cores.size() + 1);
    for (const CoreShare& core : result.cores) test::expect_balance(core);
    const CoreShare& of_ring = result.cores.back();
    EXPECT_EQ(of_ring.tasks, result.ring->passes);
    EXPECT_GT(of_ring.together_requests.requests, 10U);
    EXPECT_EQ(of_ring.traffic.read_bytes, of_ring.together_requests.bytes);
    slower += of_ring.lost() > 0 ? 1 : 0;
    // The bus counts time while any of them runs.
    const auto bus = std::find_if(result.blocks.begin(), result.blocks.end(),
                                  [](const hw::BlockReport& block) { return block.name == "bus"; });
    for (const hw::BlockReport& part : bus->parts) {
      if (!part.time) continue;
      EXPECT_GE((part.time->total + 4) * work->ring.site->machine.core.clock_mhz,
                of_ring.running * tile.bus.clock_mhz);
    }
    options.functional = options.check = options.alone = false;
    const CoresResult timing = run(*work, options);
    EXPECT_EQ(timing.cycles, result.cycles);
    EXPECT_EQ(timing.cores.back().running, of_ring.running);
    EXPECT_EQ(timing.seconds, result.seconds);
    if (HasFailure()) return;
  }
  EXPECT_EQ(cached, 4U);
  EXPECT_GT(slower, 3U) << "what others do to the memory is simulated";
}

// --check notices one bit of one logit, and a row that is missing.
TEST_F(CoresRing, LogitsAreComparedBitByBit) {
  const auto work = work_of(system_of(hw::find_machine("transformer"), 1, "dfx.cores = 2\n"),
                            small_shape(1, 2), 3, 3);
  std::vector<std::pair<std::uint32_t, std::vector<hw::Half>>> rows;
  GenerationTask task = work->ring.task;
  task.on_logits = [&](std::uint32_t position, const std::vector<hw::Half>& logits) {
    rows.emplace_back(position, logits);
  };
  test::fresh_kernel();
  static_cast<void>(generate(work->ring.site->machine, task));
  ASSERT_GT(rows.size(), 4U);
  const auto compare = [&](std::size_t flipped, std::size_t missing) {
    test::fresh_kernel();
    LogitsAlone alone(work->ring);
    for (std::size_t i = 0; i + missing < rows.size(); ++i) {
      std::vector<hw::Half> logits = rows[i].second;
      if (i == flipped) logits[7].bits ^= 1U;
      alone.add(rows[i].first, logits);
    }
    return alone.compare();
  };
  EXPECT_EQ(compare(rows.size(), 0).mismatches, 0U);
  EXPECT_EQ(compare(rows.size(), 0).operators, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CheckResult result = compare(i, 0);
    EXPECT_EQ(result.mismatches, 1U) << i;
    EXPECT_EQ(result.first, "logits after position " + std::to_string(rows[i].first));
  }
  EXPECT_EQ(compare(rows.size(), 1).mismatches, 1U);
}

// No request of the ring reaches the bus before its time, nor after one of a later time.
TEST_F(CoresRing, RequestsReachTheBusAtTheirTime) {
  hw::Machine tile = hw::find_machine("transformer");
  const auto work =
      work_of(system_of(tile, 2, "dfx.cores = 2\nuse = 'dfx-ideal'\n"), small_shape(2, 4), 3, 3);
  CoresOptions options;
  options.functional = options.alone = false;
  std::map<std::string, std::uint64_t> last;
  std::size_t of_ring = 0;
  const tlm_model::Clock bus(tile.bus.clock_mhz);
  options.bus_observers.emplace_back(
      [&](const tlm_model::BusTransaction& transaction, const std::string& initiator) {
        if (initiator.find(".ring.core") == std::string::npos) return;
        ++of_ring;
        EXPECT_EQ(transaction.asked, bus.cycle_from(sc_core::sc_time_stamp())) << initiator;
        EXPECT_GE(transaction.asked, last[initiator]) << initiator;
        // A beat of the port at most.
        EXPECT_EQ(transaction.address / 256, (transaction.address + transaction.bytes - 1) / 256);
        last[initiator] = transaction.asked;
        // Each in its part of the memory.
        const std::size_t core = initiator.find("core1") == std::string::npos ? 0 : 1;
        EXPECT_GE(transaction.address, work->ring.ddr[core]);
        EXPECT_LT(transaction.address, work->ring.ddr[core] + (2U << 20U));
      });
  const CoresResult result = run(*work, options);
  EXPECT_EQ(last.size(), 2U);
  EXPECT_EQ(of_ring, result.cores.back().together_requests.requests);
}

// A memory that is hardly there: both wait for it, the ring's tables for the most part.
TEST_F(CoresRing, WaitsForAMemoryThatOthersUse) {
  hw::Machine tile = hw::find_machine("transformer");
  tile.dram.mega_transfers = 400;
  std::map<std::size_t, double> lost;
  for (const std::size_t tiles : {1U, 3U}) {
    const auto work =
        work_of(system_of(tile, tiles, "use = 'dfx-ideal'\n"), small_shape(2, 1), 4, 8);
    CoresOptions options;
    options.functional = false;
    const CoresResult result = run(*work, options);
    const CoreShare& ring = result.cores.back();
    if (tiles == 1) {
      options.alone = false;
      test::fresh_kernel();
      EXPECT_EQ(result.cores.front().alone,
                simulate(work->plan, workload.inputs, options).cores.front().running)
          << "as without a ring";
      EXPECT_GT(result.cores.front().lost(), 0);
    }
    lost[tiles] = static_cast<double>(ring.lost()) / static_cast<double>(ring.alone);
    const auto mean = [](const RequestTimes& times) {
      return static_cast<double>(times.target_time) / static_cast<double>(times.requests);
    };
    EXPECT_GT(mean(ring.together_requests), mean(ring.alone_requests));
  }
  EXPECT_GT(lost[1], 0.0);
  EXPECT_GT(lost[3], lost[1]);
}

TEST_F(CoresRing, TheWaveShowsItsUnitsAndItsPorts) {
  const TempDirectory directory;
  const auto work =
      work_of(system_of(hw::find_machine("transformer"), 1, "dfx.cores = 2\nuse = 'dfx-ideal'\n"),
              small_shape(1, 2), 2, 2);
  CoresOptions options;
  options.functional = options.alone = false;
  options.wave.path = directory.path("run.fst");
  options.wave.inferences = 0;
  const CoresResult result = run(*work, options);
  const test::Vcd vcd = test::read_fst(options.wave.path);
  const std::uint64_t period = 1'000'000 / work->ring.site->machine.core.clock_mhz;
  for (const std::string core : {"core0", "core1"}) {
    const auto block = std::find_if(
        result.blocks.begin(), result.blocks.end(),
        [&](const hw::BlockReport& each) { return each.name == "ring." + core + ".matrix"; });
    ASSERT_NE(block, result.blocks.end());
    EXPECT_EQ(vcd.time_at("system.ring." + core + ".matrix.state", tlm_model::wave_state("busy")),
              block->time->busy * period);
    const std::string port = "system.bus.ring." + core + ".ddr_port.transactions";
    EXPECT_GT(vcd.last(port).value_or(0), 4U) << port;
  }
  const std::string view = read_file(directory.path("run.gtkw"));
  for (const char* text : {"-Cores\n", "-core0: Systolic array\n",
                           "ring.core1: ", "+{right of core 0} system.ring.to_right0.state"}) {
    EXPECT_NE(view.find(text), std::string::npos) << text;
  }
}

// Each operation of a block in RTL is in the waveform, below the core whose it is; runs of each
// alone, in other processes, write none.
TEST_F(CoresRing, TheWaveShowsItsBlocksInRtl) {
  const TempDirectory directory;
  const auto work = work_of(system_of(hw::find_machine("transformer"), 1,
                                      "dfx.cores = 2\nuse = 'dfx-ideal'\n"
                                      "backend.fp16_add = 'rtl'\n"),
                            small_shape(1, 2), 2, 2);
  CoresOptions options;
  options.wave.path = directory.path("run.fst");
  options.wave.inferences = 0;
  std::uint64_t operations = 0;
  {
    RtlWaves waves(options.wave.path, work->all);
    work->ring.rtl = [&waves](std::uint32_t core) { return waves.options(1 + core); };
    const CoresResult result = run(*work, options);
    operations = result.ring->rtl.at("fp16_add").operations;
    EXPECT_EQ(result.ring->rtl.at("fp16_add").mismatches, 0U);
    waves.write();
  }
  const test::Vcd vcd = test::read_fst(options.wave.path);
  std::uint64_t shown = 0;
  for (const std::string core : {"ring.core0.", "ring.core1."}) {
    const auto last = vcd.last("rtl." + core + "fp16_add.model.operation");
    ASSERT_TRUE(last) << core;
    EXPECT_GT(*last, 4U);
    shown += *last;
    EXPECT_TRUE(vcd.last("system." + core + "vector.state")) << core;
  }
  EXPECT_GT(operations, 10U);
  EXPECT_GE(shown, operations / 2);
  EXPECT_LE(shown, operations);
  EXPECT_NE(read_file(directory.path("run.gtkw")).find("rtl.ring.core1.fp16_add.dut."),
            std::string::npos);
}

}  // namespace
}  // namespace systole::testbench

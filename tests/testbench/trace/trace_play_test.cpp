#include "testbench/trace/trace_play.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/program/program.h"
#include "support/input_error.h"
#include "support/network/encoder_run.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/tlm/systemc_test.h"
#include "testbench/trace/bus_trace.h"

namespace systole::testbench {
namespace {

using test::Workload;
using tlm_model::BusTransaction;
using Timing = tlm_model::TracePlayer::Timing;

class TracePlay : public test::SystemCTest {
 protected:
  /// What crosses the bus in a run, by way of a file.
  BusTrace record(const Workload& workload, const mapper::Mapping& mapping,
                  const hw::Machine& machine, const std::string& name = "run.csv") {
    BusTraceWriter writer(directory_.path(name), machine);
    SimulationOptions options;
    options.functional = false;
    writer.observe(options.bus_observers);
    cycles_ = workload.simulate(mapping, machine, options).cycles.front();
    writer.commit();
    return read_bus_trace(directory_.path(name), machine);
  }

  static PlayResult play(const BusTrace& trace, const hw::Machine& machine,
                         const PlayOptions& options = {}) {
    test::fresh_kernel();
    return play_trace(trace, machine, options);
  }

  /// A trace of reads of 64 bytes of one initiator in given cycles.
  static BusTrace reads(const std::vector<std::uint64_t>& cycles) {
    BusTrace trace;
    trace.initiators = {"reader"};
    for (const std::uint64_t cycle : cycles) {
      BusTransaction transaction;
      transaction.address = 64 * trace.transactions.size();
      transaction.asked = cycle;
      transaction.bytes = 64;
      trace.transactions.push_back(transaction);
    }
    return trace;
  }

  TempDirectory directory_;
  std::uint64_t cycles_ = 0;  ///< of the run that was recorded last
};

TEST_F(TracePlay, ReproducesEveryTransactionToTheCycleOnRandomMachines) {
  const Workload encoder = test::encoder_workload({1, 64, 2, 128}, 20, 1);
  const Workload wide = test::encoder_workload({2, 32, 1, 96}, 9, 1);
  test::Random random(77);
  std::size_t transactions = 0, with_l2 = 0, with_tlb = 0, slower_bus = 0;
  for (int i = 0; i < 40; ++i) {
    const Workload& workload = i % 2 == 0 ? encoder : wide;
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    const BusTrace trace = record(workload, mapping, machine);
    const PlayResult result = play(trace, machine);
    EXPECT_EQ(result.changed, 0U) << "machine " << i << ", at most " << result.largest_change;
    EXPECT_EQ(result.cycles(), result.recorded_cycles);
    transactions += trace.transactions.size();
    with_l2 += machine.l2.kib != 0 ? 1 : 0;
    with_tlb += machine.tlb.entries != 0 ? 1 : 0;
    slower_bus += machine.bus.clock_mhz < machine.core.clock_mhz ? 1 : 0;
  }
  EXPECT_GT(transactions, 50'000U);
  EXPECT_GT(std::min({with_l2, with_tlb, slower_bus}), 5U) << "the samples are one-sided";
}

TEST_F(TracePlay, KnowsWhatARunMoved) {
  const Workload workload = test::encoder_workload({1, 64, 2, 128}, 20, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  SimulationOptions options;
  std::map<std::string, std::uint64_t> read, written;
  options.bus_observers.emplace_back(
      [&](const BusTransaction& transaction, const std::string& name) {
        (transaction.write ? written : read)[name] += transaction.bytes;
      });
  const SimulationResult run = workload.simulate(mapping, machine, options);
  std::uint64_t core_read = 0, core_written = 0;
  for (const auto& [name, bytes] : read) core_read += name == "system.host.socket" ? 0 : bytes;
  for (const auto& [name, bytes] : written)
    core_written += name == "system.host.socket" ? 0 : bytes;
  EXPECT_EQ(core_read, run.traffic.read_bytes);
  EXPECT_EQ(core_written, run.traffic.written_bytes);
  EXPECT_GT(written.at("system.host.socket"), 0U);
}

TEST_F(TracePlay, RecordingChangesNoCycleAndNothingInTheFile) {
  const Workload workload = test::encoder_workload({1, 64, 2, 128}, 20, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  const BusTrace plain = record(workload, mapping, machine, "a.csv");
  SimulationOptions options;
  options.functional = false;
  EXPECT_EQ(cycles_, workload.simulate(mapping, machine, options).cycles.front());
  const BusTrace compressed = record(workload, mapping, machine, "a.csv.gz");
  EXPECT_EQ(plain.machine, "transformer");
  EXPECT_EQ(plain.clock_mhz, machine.bus.clock_mhz);
  EXPECT_TRUE(plain.has_answers);
  ASSERT_EQ(plain.transactions.size(), compressed.transactions.size());
  EXPECT_EQ(plain.initiators, compressed.initiators);
  EXPECT_EQ(plain.initiators.front(), "host");
  for (std::size_t i = 0; i < plain.transactions.size(); ++i) {
    EXPECT_EQ(plain.transactions[i].answered, compressed.transactions[i].answered);
    EXPECT_EQ(plain.transactions[i].address, compressed.transactions[i].address);
  }
}

TEST_F(TracePlay, DependentTrafficFollowsTheMemory) {
  // One read after the answer to the one before, ten cycles later.
  const hw::Machine machine = hw::find_machine("transformer");
  BusTrace trace = reads({0, 60, 120, 180, 240});
  for (BusTransaction& transaction : trace.transactions) {
    transaction.granted = transaction.asked;
    transaction.answered = transaction.asked + 50;
  }
  trace.has_answers = true;
  std::vector<BusTransaction> played;
  PlayOptions options;
  options.timing = Timing::kDependent;
  options.observers.emplace_back([&](const BusTransaction& transaction, const std::string& name) {
    EXPECT_EQ(name, "reader");
    played.push_back(transaction);
  });
  for (const double controller_ns : {5.0, 20.0, 200.0}) {
    hw::Machine other = machine;
    other.dram.controller_ns = controller_ns;
    played.clear();
    const PlayResult result = play(trace, other, options);
    ASSERT_EQ(played.size(), 5U);
    for (std::size_t i = 1; i < played.size(); ++i) {
      EXPECT_EQ(played[i].asked, played[i - 1].answered + 10) << controller_ns;
    }
    EXPECT_EQ(result.initiators.front().reads, 5U);
    EXPECT_EQ(result.initiators.front().latencies.size(), 5U);
    EXPECT_GE(result.initiators.front().latency_at(1.0), result.initiators.front().latency_at(0.5));
  }
}

TEST_F(TracePlay, DependentTrafficOfTheSameMachineTakesAboutAsLong) {
  const Workload workload = test::encoder_workload({1, 64, 2, 128}, 20, 1);
  for (const char* const name : {"transformer", "gemmini", "tiny"}) {
    const hw::Machine machine = hw::find_machine(name);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    const BusTrace trace = record(workload, mapping, machine);
    const PlayResult result = play(trace, machine, {Timing::kDependent, 0, {}, {}});
    const double ratio =
        static_cast<double>(result.cycles()) / static_cast<double>(result.recorded_cycles);
    EXPECT_GT(ratio, 0.95) << name;
    EXPECT_LT(ratio, 1.2) << name;
  }
}

TEST_F(TracePlay, HoldsBackWhatIsBeyondTheLimit) {
  const hw::Machine machine = hw::find_machine("transformer");
  const BusTrace trace = reads(std::vector<std::uint64_t>(32, 0));
  for (const std::uint32_t limit : {1U, 4U, 16U}) {
    std::vector<std::uint64_t> asked, answered;
    PlayOptions options;
    options.outstanding = limit;
    options.observers.emplace_back([&](const BusTransaction& transaction, const std::string&) {
      asked.push_back(transaction.asked);
      answered.push_back(transaction.answered);
    });
    static_cast<void>(play(trace, machine, options));
    ASSERT_EQ(asked.size(), 32U);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      EXPECT_EQ(asked[i], i < limit ? 0 : answered[i - limit]) << limit;
    }
  }
}

TEST_F(TracePlay, NeedsAnswersToDependOnThem) {
  const std::string error = input_error_of([&] {
    static_cast<void>(
        play(reads({0}), hw::find_machine("transformer"), {Timing::kDependent, 0, {}, {}}));
  });
  expect_contains(error, "--timing dependent: the trace does not say when answers came");
}

TEST_F(TracePlay, OtherToolsReadWhatARunWritesAndTheOtherWay) {
  const Workload workload = test::encoder_workload({1, 64, 2, 128}, 20, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  const BusTrace own = record(workload, mapping, machine);
  const BusTrace dramsys = record(workload, mapping, machine, "a.stl.gz");
  const BusTrace ramulator = record(workload, mapping, machine, "a.trace");
  EXPECT_FALSE(dramsys.has_answers || ramulator.has_answers);
  std::vector<BusTransaction> in_order = own.transactions;
  std::stable_sort(
      in_order.begin(), in_order.end(),
      [](const BusTransaction& x, const BusTransaction& y) { return x.asked < y.asked; });
  std::size_t at = 0;
  for (const BusTransaction& transaction : in_order) {
    if (transaction.address >= hw::kRegistersBase) continue;  // no memory
    ASSERT_LT(at, dramsys.transactions.size());
    ASSERT_LT(at, ramulator.transactions.size());
    const BusTransaction& timed = dramsys.transactions[at];
    const BusTransaction& untimed = ramulator.transactions[at];
    EXPECT_EQ(timed.asked, transaction.asked);
    EXPECT_EQ(timed.bytes, transaction.bytes);
    EXPECT_EQ(untimed.asked, at);
    EXPECT_EQ(untimed.bytes, machine.dma.request_bytes);
    for (const BusTransaction* const other : {&timed, &untimed}) {
      EXPECT_EQ(other->address, transaction.address);
      EXPECT_EQ(other->write, transaction.write);
    }
    ++at;
  }
  EXPECT_EQ(dramsys.transactions.size(), at);
  EXPECT_EQ(ramulator.transactions.size(), at);
  const PlayResult result = play(ramulator, machine, {Timing::kElapsed, 16, {}, {}});
  EXPECT_EQ(result.initiators.front().reads + result.initiators.front().writes, at);
}

TEST_F(TracePlay, TheExampleIsThatOfTheProgram) {
  const std::string path = directory_.path("matmul_tiny.csv");
  const std::string commands = directory_.path("commands.csv");
  const ProgramRun run =
      run_systole({"matmul", "16x16x16", "-m", "tiny", "--trace", path, "--commands", commands});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(read_file(path), read_file(source_path("traces/bus/matmul_tiny.csv")));
  EXPECT_EQ(read_file(commands), read_file(source_path("traces/commands/matmul_tiny.csv")));
  const ProgramRun played = run_systole({"play", path, "-m", "tiny", "--json"});
  EXPECT_EQ(played.exit_code, 0) << played.err;
  const nlohmann::json document = document_of(played.out);
  EXPECT_EQ(document.at("changed"), 0);
  EXPECT_EQ(document.at("bus_cycles"), document.at("recorded_bus_cycles"));
  EXPECT_EQ(document.at("initiators").at(0).at("name"), "host");
  EXPECT_EQ(document.at("counters").at("bus").at("decode_errors"), 0);
}

}  // namespace
}  // namespace systole::testbench

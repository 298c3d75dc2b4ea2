#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/ftr_contents.h"
#include "support/network/encoder_run.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/rtl_wave.h"
#include "support/tlm/systemc_test.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/cores/head_split.h"
#include "testbench/cores/layer_split.h"
#include "testbench/explain/command_trace.h"
#include "testbench/explain/explanation.h"
#include "testbench/explain/transaction_view.h"
#include "testbench/run/rtl_blocks.h"
#include "tlm/bus/bus_transaction.h"
#include "tlm/common/wave_states.h"

/// Records of a run of several cores: transactions, commands, waveforms of what each runs.
namespace systole::testbench {
namespace {

using test::FtrContents;
using test::FtrTransaction;
using test::number;
using test::Workload;
using tlm_model::CommandTrace;

/// Two cores of other clocks, behind other links.
hw::CoreSystem two_cores() {
  const TempDirectory directory;
  return hw::find_system(directory.write("system.toml",
                                         "base = 'transformer'\n[[core]]\nname = 'near'\n"
                                         "[[core]]\nname = 'away'\nlink_ns = 20\n"
                                         "core.clock_mhz = 700\n"));
}

std::vector<CoreCommands> commands_of(const hw::CoreSystem& system, const CoresResult& result) {
  std::vector<CoreCommands> cores;
  for (std::size_t i = 0; i < system.cores.size(); ++i) {
    const FirstTask& first = result.first_tasks[i];
    cores.push_back({system.cores[i].name, first.program, first.traces, first.accounts,
                     system.cores[i].machine.core.clock_mhz, first.finished,
                     system.cores[i].link_ns});
  }
  return cores;
}

struct CoresRecords : public test::SystemCTest {
  CoresRecords() : plan(plan_layers(system, {std::shared_ptr<void>(), &workload.graph}, 3)) {
    options.functional = options.alone = false;
  }
  CoresResult run() {
    test::fresh_kernel();
    return simulate(plan, workload.inputs, options);
  }

  const Workload workload = test::encoder_workload({2, 32, 4, 64, true}, 13, 3);
  const hw::CoreSystem system = two_cores();
  const CorePlan plan;
  CoresOptions options;
  TempDirectory directory;
};

TEST_F(CoresRecords, TransactionsOfEveryCoreMoveForItsCommands) {
  TransactionView view(directory.path("run.ftr"), system.machine);
  view.observe(options.bus_observers);
  std::map<std::string, std::size_t> on_bus;
  const CoresResult result = run();
  view.write(commands_of(system, result));
  const FtrContents file(read_file(directory.path("run.ftr")));
  std::map<std::uint64_t, std::pair<std::size_t, std::uint32_t>> command_of;  // core, position
  for (const auto& [id, transaction] : file.transactions) {
    if (transaction.stream.compare(0, 4, "bus.") == 0) {
      ++on_bus[transaction.stream.substr(4, transaction.stream.find('.', 4) - 4)];
      continue;
    }
    if (transaction.generator.find(".events") != std::string::npos) continue;
    const std::size_t core = transaction.stream.compare(0, 5, "near.") == 0 ? 0 : 1;
    const auto index = static_cast<std::uint32_t>(number(transaction, "command"));
    command_of[id] = {core, index};
    const FirstTask& first = result.first_tasks[core];
    const CommandTrace& trace = first.traces.at(index);
    const tlm_model::Clock clock(system.cores[core].machine.core.clock_mhz);
    EXPECT_EQ(transaction.stream, system.cores[core].name + "." + block_of(trace.unit));
    EXPECT_EQ(transaction.attributes.at("operator"), first.program->operators[trace.op].name);
    EXPECT_EQ(transaction.begin, clock.edge_ps(trace.dispatched));
    EXPECT_EQ(transaction.end, clock.edge_ps(trace.completed));
  }
  EXPECT_EQ(command_of.size(),
            result.first_tasks[0].traces.size() + result.first_tasks[1].traces.size());
  for (const char* initiator : {"near", "away", "near_host", "away_host"}) {
    EXPECT_GT(on_bus[initiator], 0U) << initiator;
  }
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> moved;
  std::size_t hazards = 0, blocked = 0;
  for (const auto& [name, from, to] : file.relations) {
    if (name == "hazard") {
      ++hazards;
      EXPECT_EQ(command_of.at(from).first, command_of.at(to).first);
    }
    if (name == "moves") {
      const FtrTransaction& bus = file.transactions.at(to);
      const std::string prefix = "bus." + system.cores[command_of.at(from).first].name + ".";
      EXPECT_EQ(bus.stream.compare(0, prefix.size(), prefix), 0) << bus.stream;
      moved[command_of.at(from)] += number(bus, "bytes");
    }
  }
  std::size_t loads = 0;
  for (std::size_t core = 0; core < 2; ++core) {
    const FirstTask& first = result.first_tasks[core];
    for (const CommandTrace& trace : first.traces) {
      blocked += trace.was_blocked ? 1 : 0;
      const auto* const load = first.program->commands[trace.index].as<hw::cmd::Load>();
      if (load == nullptr) continue;
      ++loads;
      const std::uint64_t bytes = std::uint64_t{load->m} * load->n * hw::bytes_of(load->type);
      EXPECT_EQ((moved[{core, trace.index}]), bytes) << core << ' ' << trace.index;
    }
  }
  EXPECT_EQ(hazards, blocked);
  EXPECT_GT(loads, 4U);
}

TEST_F(CoresRecords, CommandsOfEveryCoreAreInOneTable) {
  CommandTraceWriter writer(directory.path("run.csv"), system.machine);
  const CoresResult result = run();
  writer.write(commands_of(system, result));
  std::istringstream lines(read_file(directory.path("run.csv")));
  std::string line;
  std::vector<std::string> head;
  while (std::getline(lines, line) && line.front() == '#') head.push_back(line);
  const std::vector<std::string> expected{
      "# systole command trace 1", "# machine custom", "# core near",
      "# clock_mhz 1000",          "# core away",      "# clock_mhz 700"};
  EXPECT_EQ(head, expected);
  EXPECT_EQ(line.compare(0, 13, "core,command,"), 0) << line;
  std::size_t rows = 0;
  for (std::size_t core = 0; core < 2; ++core) {
    for (const CommandTrace& trace : result.first_tasks[core].traces) {
      ASSERT_TRUE(std::getline(lines, line));
      std::istringstream fields(line);
      std::vector<std::string> found;
      for (std::string field; std::getline(fields, field, ',');) found.push_back(field);
      ASSERT_GE(found.size(), 10U);
      EXPECT_EQ(found[0], system.cores[core].name);
      EXPECT_EQ(found[1], std::to_string(trace.index));
      EXPECT_EQ(found[2], result.first_tasks[core].program->operators[trace.op].name);
      EXPECT_EQ(found[5], std::to_string(trace.dispatched));
      EXPECT_EQ(found[8], std::to_string(trace.completed));
      EXPECT_EQ(found[9], trace.was_blocked ? std::to_string(trace.blocker) : "");
      ++rows;
    }
  }
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "# end " + std::to_string(rows));
}

// By heads a core runs a program per segment: each is shown by its own operators.
TEST_F(CoresRecords, AWaveShowsTheOperatorsOfEveryProgram) {
  const CorePlan by_heads = plan_heads(system, {std::shared_ptr<void>(), &workload.graph}, 1);
  std::vector<std::vector<std::string>> expected(2);  // by core: operators of all its programs
  for (const CoreProgram& program : by_heads.programs) {
    for (const hw::Operator& op : program.mapping->program.operators) {
      expected[program.core].push_back(op.name);
    }
  }
  options.wave.path = directory.path("run.fst");
  options.wave.inferences = 0;
  test::fresh_kernel();
  static_cast<void>(simulate(by_heads, {workload.inputs.front()}, options));
  const test::Vcd vcd = test::read_fst(options.wave.path);
  for (std::size_t core = 0; core < 2; ++core) {
    const std::string name = system.cores[core].name;
    std::istringstream table(read_file(directory.path("run." + name + ".operators.txt")));
    std::map<std::uint64_t, std::string> texts;
    for (std::string line; std::getline(table, line);) {
      if (line.find_first_not_of("0123456789") != line.find(' ')) continue;
      texts[std::stoull(line)] = line.substr(line.rfind('?') + 1);
    }
    std::vector<bool> shown(expected[core].size(), false);
    for (const char* unit : {"load", "array", "store"}) {
      for (const auto& change : vcd.changes("system." + name + "." + unit + ".operator")) {
        if (!change.value) continue;
        ASSERT_LT(*change.value, shown.size()) << unit;
        shown[*change.value] = true;
        EXPECT_EQ(texts.at(*change.value), expected[core][*change.value]);
      }
    }
    EXPECT_EQ(std::count(shown.begin(), shown.end(), false), 0) << name;
  }
}

// The same of a timeline, whose inference is all segments together.
TEST_F(CoresRecords, ATimelineShowsTheCommandsOfEveryProgram) {
  const std::string line =
      "run -m transformer --model bert-base --layers 1 --length 8 --d 64 --heads 4 --ffn 64 "
      "--cores 2 --split heads --functional off -n 2 --timeline run.json --timeline-images ";
  std::map<int, std::size_t> slices;
  for (const int images : {1, 0}) {
    static_cast<void>(output_of(words_of(line + std::to_string(images)), directory.path("")));
    const auto document = nlohmann::json::parse(read_file(directory.path("run.json")));
    std::map<std::string, std::size_t> commands;  // by operator
    std::map<int, std::map<std::string, std::size_t>> inferences;
    for (const auto& event : document["traceEvents"]) {
      if (event.value("ph", "") != "X") continue;
      const std::string name = event["name"];
      if (event["args"].contains("what")) {
        ++slices[images];
        ++commands[name];
      }
      if (name.compare(0, 9, "inference") == 0) ++inferences[event["pid"].get<int>()][name];
    }
    EXPECT_EQ(inferences.size(), 2U);
    for (const auto& [core, of] : inferences) {
      EXPECT_EQ(of.size(), images == 1 ? 1U : 2U) << core;
      for (const auto& [name, programs] : of) EXPECT_GE(programs, 3U) << name;
    }
    EXPECT_GT(commands.size(), 12U);
  }
  EXPECT_EQ(slices[0], 2 * slices[1]);
}

// RTL of each core, at the edges of that core's clock, while that core's unit works.
TEST_F(CoresRecords, RtlOfEveryCoreIsInTheWave) {
  hw::CoreSystem with_rtl = hw::equal_cores(hw::find_machine("tiny"), 2);
  with_rtl.cores[1].machine.core.clock_mhz = 800;
  for (hw::CoreSite& core : with_rtl.cores) {
    for (const char* block : {"softmax_unit", "requantizer"}) swap_for_rtl(core.machine, block);
  }
  const CorePlan layers = plan_layers(with_rtl, {std::shared_ptr<void>(), &workload.graph}, 1);
  options.functional = options.check = true;
  options.wave.path = directory.path("run.fst");
  options.wave.inferences = 0;
  RtlReport report;
  test::fresh_kernel();
  RtlWaves waves(options.wave.path, with_rtl);
  options.engines = [&](std::size_t core) {
    return make_engines(with_rtl.cores[core].machine, waves.options(core), report);
  };
  const CoresResult result = simulate(layers, {workload.inputs.front()}, options);
  waves.write();
  EXPECT_EQ(result.check.mismatches, 0U);
  EXPECT_EQ(total_mismatches(report), 0U);
  const test::Vcd vcd = test::read_fst(options.wave.path);
  for (const hw::CoreSite& core : with_rtl.cores) {
    const std::map<std::string, std::string> units = {{"softmax_unit", "store.exponential"},
                                                      {"requantizer", "store"}};
    for (const auto& [block, unit] : units) {
      const std::string full = core.name + "." + block;
      test::expect_a_clock(vcd, full, 1'000'000 / core.machine.core.clock_mhz);
      for (const std::uint64_t time : test::operations(vcd, full)) {
        EXPECT_TRUE(vcd.at("system." + core.name + "." + unit + ".command", time).has_value())
            << full << " at " << time;
      }
    }
  }
  // The stages of a pipeline work one after the other, and so do their blocks.
  const auto first = test::operations(vcd, "core0.softmax_unit");
  const auto second = test::operations(vcd, "core1.softmax_unit");
  ASSERT_FALSE(first.empty());
  ASSERT_FALSE(second.empty()) << "the second stage has no attention";
  EXPECT_LT(first.back(), second.front());
  EXPECT_NE(read_file(directory.path("run.gtkw")).find("-core1.softmax_unit: RTL ports\n"),
            std::string::npos);
}

}  // namespace
}  // namespace systole::testbench

#include "testbench/explain/transaction_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/ftr_contents.h"
#include "support/input_error.h"
#include "support/network/encoder_run.h"
#include "support/report_values.h"
#include "support/temp_directory.h"
#include "testbench/explain/command_trace.h"
#include "testbench/explain/explanation.h"
#include "testbench/wave/ftr_file.h"

namespace systole::testbench {
namespace {

using test::FtrContents;
using test::FtrTransaction;
using test::number;
using tlm_model::CommandTrace;

TEST(TransactionView, HoldsEveryCommandWithItsStallsAndHazard) {
  const test::Workload workload = test::encoder_workload({2, 32, 2, 64}, 16, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  const TempDirectory directory;
  TransactionView view(directory.path("run.ftr"), machine);
  SimulationOptions options;
  options.functional = false;
  view.observe(options.bus_observers);
  std::vector<tlm_model::BusTransaction> on_bus;
  options.bus_observers.emplace_back([&](const tlm_model::BusTransaction& transaction,
                                         const std::string&) { on_bus.push_back(transaction); });
  const SimulationResult result = workload.simulate(mapping, machine, options);
  view.write({commands_of(mapping.program, result, machine.core.clock_mhz)});
  const FtrContents file(read_file(directory.path("run.ftr")));
  const std::uint64_t ps = 1'000'000 / machine.core.clock_mhz;

  std::map<std::uint64_t, std::uint32_t> command_of;
  std::vector<std::uint64_t> bus;  // in the file, in order of their numbers
  for (const auto& [id, transaction] : file.transactions) {
    if (transaction.stream.compare(0, 4, "bus.") == 0) {
      bus.push_back(id);
      continue;
    }
    if (transaction.generator.find(".events") != std::string::npos) continue;
    const auto index = static_cast<std::uint32_t>(number(transaction, "command"));
    const CommandTrace& trace = result.traces.at(index);
    command_of[id] = index;
    EXPECT_EQ(transaction.stream, block_of(trace.unit));
    EXPECT_EQ(transaction.generator, hw::name_of(trace.opcode));
    EXPECT_EQ(transaction.attributes.at("operator"), mapping.program.operators[trace.op].name);
    EXPECT_EQ(transaction.begin, trace.dispatched * ps);
    EXPECT_EQ(transaction.end, trace.completed * ps);
    EXPECT_EQ(number(transaction, "dispatched_cycle"), trace.dispatched);
    EXPECT_EQ(number(transaction, "started_cycle"), trace.started);
    EXPECT_EQ(number(transaction, "released_cycle"), trace.released);
    EXPECT_EQ(number(transaction, "completed_cycle"), trace.completed);
  }
  EXPECT_EQ(command_of.size(), result.traces.size());

  on_bus.erase(std::remove_if(on_bus.begin(), on_bus.end(),
                              [&](const auto& one) { return one.asked > result.finished; }),
               on_bus.end());
  ASSERT_EQ(bus.size(), on_bus.size());
  for (std::size_t i = 0; i < bus.size(); ++i) {
    const FtrTransaction& transaction = file.transactions.at(bus[i]);
    EXPECT_EQ(transaction.begin, on_bus[i].asked * ps);
    EXPECT_EQ(transaction.end, on_bus[i].answered * ps);
    EXPECT_EQ(transaction.generator, on_bus[i].write ? "write" : "read");
    EXPECT_EQ(number(transaction, "address"), on_bus[i].address);
    EXPECT_EQ(number(transaction, "bytes"), on_bus[i].bytes);
    EXPECT_EQ(number(transaction, "granted_bus_cycle"), on_bus[i].granted);
  }

  std::map<std::pair<std::string, std::string>, std::uint64_t> stalls;
  std::map<std::uint32_t, std::uint64_t> moved;  // bytes, by command
  std::size_t blocked = 0, hazards = 0, events = 0;
  for (const CommandTrace& trace : result.traces) blocked += trace.was_blocked ? 1 : 0;
  for (const auto& [name, from, to] : file.relations) {
    const FtrTransaction& target = file.transactions.at(to);
    const FtrTransaction& source = file.transactions.at(from);
    if (name == "hazard") {
      ++hazards;
      EXPECT_EQ(result.traces[command_of.at(to)].blocker, command_of.at(from));
      continue;
    }
    if (name == "moves") {
      moved[command_of.at(from)] += number(target, "bytes");
      continue;
    }
    ++events;
    EXPECT_EQ(name, "parent_of");
    EXPECT_EQ(target.stream, source.stream);
    EXPECT_EQ(target.generator, source.generator + ".events");
    EXPECT_GE(target.begin, source.begin);
    EXPECT_LE(target.end, source.end);
    stalls[{target.stream, target.attributes.at("name")}] += (target.end - target.begin) / ps;
  }
  EXPECT_EQ(hazards, blocked);
  EXPECT_GT(hazards, 0U);
  EXPECT_EQ(events + command_of.size() + bus.size(), file.transactions.size());
  // What a load moves is known from the command.
  std::uint64_t loads = 0;
  for (const CommandTrace& trace : result.traces) {
    if (const auto* load = mapping.program.commands[trace.index].as<hw::cmd::Load>()) {
      ++loads;
      EXPECT_EQ(moved[trace.index], std::uint64_t{load->m} * load->n * hw::bytes_of(load->type));
    }
  }
  EXPECT_GT(loads, 0U);
  for (const hw::BlockReport& block : result.blocks) {
    if (block.name != "load" && block.name != "array" && block.name != "store") continue;
    // After the four that every unit has: no command, and the three hazards.
    for (std::size_t i = 4; i < block.time->stalled.size(); ++i) {
      const hw::TimeAccount::Stall& stall = block.time->stalled[i];
      const auto sum = std::make_pair(block.name, std::string(stall.cause));
      EXPECT_EQ(stalls[sum], stall.time) << block.name << "." << stall.cause;
    }
  }
}

TEST(FtrFile, KeepsWhatFillsManyChunksAndEveryWidthOfNumber) {
  constexpr std::uint64_t kCount = 20'000;
  std::ostringstream out;
  FtrFile file(out);
  const FtrFile::Generator one = file.add_generator("read", file.add_stream("bus", "tlm"));
  const FtrFile::Generator other = file.add_generator("write", file.add_stream("dram", "tlm"));
  const FtrFile::Text name = file.text("value");
  std::vector<std::uint64_t> values;
  std::vector<FtrFile::Transaction> added;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::uint64_t value = i < 70 ? ((std::uint64_t{1} << (i % 64)) - (i >= 64 ? 1 : 0)) : i;
    values.push_back(value);
    added.push_back(file.add(i % 3 == 0 ? other : one, i, i + 7, {{name, false, value}}));
    if (i > 0) file.relate(file.text("next"), added[i - 1], added[i]);
  }
  file.close();
  ASSERT_TRUE(out.good());
  const FtrContents contents(out.str());
  ASSERT_EQ(contents.transactions.size(), kCount);
  ASSERT_EQ(contents.relations.size(), kCount - 1);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const FtrTransaction& transaction = contents.transactions.at(added[i].id);
    ASSERT_EQ(transaction.attributes.at("value"), std::to_string(values[i]));
    ASSERT_EQ(transaction.begin, i);
    ASSERT_EQ(transaction.end, i + 7);
    ASSERT_EQ(transaction.stream, i % 3 == 0 ? "dram" : "bus");
    ASSERT_EQ(transaction.generator, i % 3 == 0 ? "write" : "read");
    if (i == 0) continue;
    const FtrContents::Relation expected{"next", added[i - 1].id, added[i].id};
    ASSERT_EQ(contents.relations[i - 1], expected);
  }
}

TEST(CommandTraceFile, HasALinePerCommand) {
  const test::Workload workload = test::encoder_workload({1, 32, 2, 64}, 16, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  SimulationOptions options;
  options.functional = false;
  const SimulationResult result = workload.simulate(mapping, machine, options);
  const TempDirectory directory;
  CommandTraceWriter writer(directory.path("a.csv"), machine);
  writer.write({commands_of(mapping.program, result, machine.core.clock_mhz)});
  std::istringstream lines(read_file(directory.path("a.csv")));
  std::string line;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(std::count(line.begin(), line.end(), ','), 9);
  std::map<std::string, std::uint64_t> waits;  // for memory, by unit
  for (const CommandTrace& trace : result.traces) {
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream fields(line);
    std::vector<std::string> found;
    for (std::string field; std::getline(fields, field, ',');) found.push_back(field);
    found.resize(10);  // nothing follows the last comma of a command that never waits
    const std::vector<std::string> expected{std::to_string(trace.index),
                                            mapping.program.operators[trace.op].name,
                                            block_of(trace.unit),
                                            std::string(hw::name_of(trace.opcode)),
                                            std::to_string(trace.dispatched),
                                            std::to_string(trace.started),
                                            std::to_string(trace.released),
                                            std::to_string(trace.completed),
                                            trace.was_blocked ? std::to_string(trace.blocker) : "",
                                            found[9]};
    EXPECT_EQ(found, expected);
    const std::size_t at = found[9].find("memory=");
    if (at != std::string::npos) waits[found[2]] += std::stoull(found[9].substr(at + 7));
  }
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "# end " + std::to_string(result.traces.size()));
  for (const hw::BlockReport& block : result.blocks) {
    if (block.name != "load" && block.name != "store") continue;
    EXPECT_EQ(waits[block.name], test::values_of(block).at("stalled.memory"));
  }
}

TEST(TransactionView, WithoutWriteThereIsNoFile) {
  const TempDirectory directory;
  const hw::Machine machine = hw::find_machine("tiny");
  { const TransactionView view(directory.path("run.ftr"), machine); }
  EXPECT_TRUE(directory.names().empty());
  EXPECT_NE(
      input_error_of([&] { TransactionView view(directory.path("no/a"), machine); }).find("no/a"),
      std::string::npos);
}

}  // namespace
}  // namespace systole::testbench

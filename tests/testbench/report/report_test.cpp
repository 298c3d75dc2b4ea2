#include "tlm/common/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/accounting.h"
#include "support/text_lines.h"
#include "testbench/common/text.h"
#include "testbench/report/block_accounts.h"
#include "testbench/report/measurement.h"
#include "testbench/report/report_run.h"

namespace systole::testbench {
namespace {

void expect_fits(const std::string& text) {
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), kTextWidth) << line;
}

/// A block that was busy for `busy` and waited for each cause in turn.
tlm_model::BlockReport block(std::string name, std::uint64_t busy,
                             const std::vector<std::pair<std::string, std::uint64_t>>& waits,
                             std::uint64_t total) {
  std::vector<hw::BlockAccount::Cause> causes;
  for (const auto& wait : waits) causes.push_back({wait.first, "a cause"});
  hw::BlockAccount account("cycles", std::move(causes));
  account.busy_until(busy);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    account.stall_until(account.now() + waits[i].second, i);
  }
  return tlm_model::make_report(std::move(name), account, total,
                                {{"work", "things", "things done", 7}});
}

SimulationResult result_of(std::vector<std::uint64_t> cycles) {
  SimulationResult result;
  result.cycles = std::move(cycles);
  result.total_cycles = 1'000'000'000'000;
  result.wall_seconds = 2.0;
  result.commands = 123456789;
  result.events.macs = 1'000'000'000;
  result.events.dram_bytes = 500'000'000;
  result.events.seconds = 1e-3;
  return result;
}

TEST(Text, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(18446744073709551615U), "18,446,744,073,709,551,615");
}

TEST(Text, CountsInThePlural) {
  EXPECT_EQ(counted(0, "layer"), "0 layers");
  EXPECT_EQ(counted(1, "layer"), "1 layer");
  EXPECT_EQ(counted(2000, "layer"), "2,000 layers");
  EXPECT_EQ(counted(1, "query", "queries"), "1 query");
  EXPECT_EQ(counted(2, "query", "queries"), "2 queries");
}

TEST(Text, ChoosesPrefixes) {
  EXPECT_EQ(with_prefix(0.0, "J"), "0 J");
  EXPECT_EQ(with_prefix(1.0, "s"), "1.00 s");
  EXPECT_EQ(with_prefix(7.5e-5, "J"), "75.0 uJ");
  EXPECT_EQ(with_prefix(4.2e7, "cycles/s"), "42.0 Mcycles/s");
  EXPECT_EQ(with_prefix(-0.25, "s"), "-250 ms");
  EXPECT_EQ(with_prefix(3e20, "J"), "300000000 TJ");
}

TEST(Text, WrapsBehindTheLabel) {
  FactList facts;
  facts.add("name", "short");
  facts.add("much", std::string(40, 'a') + " " + std::string(40, 'b'));
  EXPECT_EQ(facts.text(), "name  short\nmuch  " + std::string(40, 'a') + "\n      " +
                              std::string(40, 'b') + "\n");
}

TEST(Text, TableAlignsAndFits) {
  Table table({{"name"}, {"n", Table::Align::kRight}, {"words"}});
  table.add({"a", "1", "x"});
  table.add({"bcd", "1000", ""});
  EXPECT_EQ(table.text(), "name     n  words\na        1  x\nbcd   1000\n");

  Table wide({{"name"}, {"n", Table::Align::kRight}, {"words"}});
  std::string words;
  for (int i = 0; i < 40; ++i) words += "word" + std::to_string(i) + " ";
  wide.add({"beginning_" + std::string(90, 'x') + "_end", "12345", words});
  expect_fits(wide.text());
  EXPECT_NE(wide.text().find("word39"), std::string::npos);
  EXPECT_NE(wide.text().find("xxx_end"), std::string::npos);
  EXPECT_EQ(wide.text().find("beginning_" + std::string(90, 'x')), std::string::npos);
}

TEST(BlockAccounts, AWholeBlockKeepsItsCounters) {
  const AccountTable table =
      account_table({block("array", 40, {{"drain", 10}, {"load", 20}}, 100)});
  ASSERT_EQ(table.blocks.size(), 1U);
  const BlockAccounts& array = table.blocks[0];
  EXPECT_EQ(array.name, "array");
  EXPECT_EQ(array.unit, "cycles");
  EXPECT_EQ(array.busy, 40U);
  EXPECT_EQ(array.stalled_total(), 30U);
  EXPECT_EQ(array.idle, 30U);
  EXPECT_EQ(array.total, 100U);
  ASSERT_EQ(array.counters.size(), 1U);
  EXPECT_EQ(array.counters[0].value, 7U);
  EXPECT_TRUE(table.counters.empty());
}

TEST(BlockAccounts, PartsOfABlockStandAlone) {
  hw::BlockAccount channel("ps", {{"row.miss", "a cause with a dot"}});
  channel.busy_until(5);
  channel.stall_until(7, 0);
  channel.finish(10);
  tlm_model::BlockReport dram{"dram", {}, {{"reads", "requests", "of all channels", 3}}};
  for (const char* name : {"channel1.", "channel10."}) {
    channel.for_each([&](const hw::Counter& c) { dram.counters.push_back(c); }, name);
  }
  dram.counters.push_back({"channel10.refreshes", "refreshes", "of one channel", 2});
  const AccountTable table = account_table({dram});
  ASSERT_EQ(table.blocks.size(), 2U);
  for (const BlockAccounts& part : table.blocks) {
    EXPECT_EQ(part.busy + part.stalled_total() + part.idle, part.total);
    EXPECT_EQ(part.total, 10U);
    ASSERT_EQ(part.stalled.size(), 1U);
    EXPECT_EQ(part.stalled[0].first, "row.miss");
  }
  EXPECT_EQ(table.blocks[0].name, "dram.channel1");
  EXPECT_TRUE(table.blocks[0].counters.empty());
  EXPECT_EQ(table.blocks[1].name, "dram.channel10");
  ASSERT_EQ(table.blocks[1].counters.size(), 1U);
  EXPECT_EQ(table.blocks[1].counters[0].name, "refreshes");
  ASSERT_EQ(table.counters.at("dram").size(), 1U);
  EXPECT_EQ(table.counters.at("dram")[0].name, "reads");
}

TEST(Measurement, FiguresFollowFromTheResult) {
  hw::Machine machine;
  machine.energy.leakage_mw = 10;
  const Measurement measurement =
      measure(machine, "model", 256'000, {}, result_of({1000, 2000, 3000, 2000}));
  EXPECT_DOUBLE_EQ(measurement.mean_cycles(), 2000.0);
  EXPECT_DOUBLE_EQ(measurement.utilisation(), 0.5);
  EXPECT_DOUBLE_EQ(measurement.cycles_per_second(), 5e11);
  const hw::EnergyReport energy = measurement.energy();
  EXPECT_DOUBLE_EQ(energy.mac, 1e9 * 0.3e-12 / 4);
  EXPECT_DOUBLE_EQ(energy.dram, 5e8 * 160e-12 / 4);
  EXPECT_DOUBLE_EQ(energy.leakage, 1e-3 * 10e-3 / 4);
  EXPECT_THROW(static_cast<void>(measure(machine, "model", 1, {}, {})), std::invalid_argument);
}

TEST(Measurement, UtilisationIsOfAllRowsAndColumns) {
  hw::Machine machine;
  for (const auto& [rows, cols] : {std::pair{4U, 64U}, std::pair{64U, 4U}}) {
    machine.array.rows = rows;
    machine.array.cols = cols;
    EXPECT_DOUBLE_EQ(measure(machine, "model", 64'000, {}, result_of({1000})).utilisation(), 0.25);
  }
}

TEST(Measurement, TrafficIsThatOfTheCoreInAnInference) {
  const auto bytes = [](const char* name, std::uint64_t value) {
    return hw::Counter{name, "bytes", "moved", value};
  };
  SimulationResult result = result_of({1000, 1000, 1000, 1000});
  result.blocks = {
      {"bus",
       {},
       {bytes("system.core.load.dma.read_bytes", 4000),
        bytes("system.core.store.read_dma.read_bytes", 400),
        bytes("system.core.store.write_dma.written_bytes", 80),
        bytes("system.core.attention.write_dma.written_bytes", 8),
        bytes("system.host.read_bytes", 10000), bytes("system.host.written_bytes", 10000)}}};
  const Measurement measurement = measure({}, "model", 1, {}, std::move(result));
  EXPECT_EQ(measurement.traffic().read_bytes, 1100U);
  EXPECT_EQ(measurement.traffic().written_bytes, 22U);
  const nlohmann::ordered_json document = to_json(measurement);
  EXPECT_EQ(document["dram_read_bytes"], 1100);
  EXPECT_EQ(document["dram_write_bytes"], 22);
}

TEST(ReportRun, FitsWhateverTheNumbers) {
  SimulationResult result = result_of({UINT64_MAX / 4, UINT64_MAX / 8, 1});
  const std::uint64_t large = UINT64_MAX / 64;
  result.check = {large, large, large, std::string(60, 'q') + " " + std::string(65, 'r')};
  result.blocks = {block("a_block_of_very_long_name_indeed", large,
                         {{"a_cause_of_long_name", large},
                          {"another_cause_of_long_name", large},
                          {"the_third_cause", large},
                          {"never", 0}},
                         UINT64_MAX / 4),
                   block("b", 0, {}, 0)};
  SimulationOptions options;
  options.check = true;
  hw::Machine machine;
  machine.name = std::string(64, 'm');
  Measurement measurement = measure(machine, "model", UINT64_MAX / 2, options, std::move(result));
  measurement.accuracy = 0.98765;
  const std::string text = report_text(measurement, {"out.json", ""}, {{"more", "of the same"}});
  expect_fits(text);
  EXPECT_NE(text.find("98.77%"), std::string::npos) << text;
  EXPECT_NE(text.find("another_cause_of_long_name"), std::string::npos) << text;
  EXPECT_EQ(text.find("never"), std::string::npos) << text;
  EXPECT_NE(text.find("written"), std::string::npos);
  EXPECT_NE(text.find(std::string(65, 'r')), std::string::npos);
}

TEST(ReportRun, SaysWhatWasNotDone) {
  SimulationOptions timing;
  timing.functional = false;
  timing.check = true;  // without effect
  const std::string text = report_text(measure({}, "m", 1, timing, result_of({10})), {});
  EXPECT_NE(text.find("timing only"), std::string::npos);
  EXPECT_EQ(text.find("check"), std::string::npos);
  const std::string unchecked = report_text(measure({}, "m", 1, {}, result_of({10})), {});
  EXPECT_NE(unchecked.find("not checked"), std::string::npos);
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/accounting.h"
#include "support/text_lines.h"
#include "testbench/common/text.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {
namespace {

void expect_fits(const std::string& text) {
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), kTextWidth) << line;
}

/// A block that was busy for `busy` and waited for each cause in turn.
hw::BlockReport block(std::string name, std::uint64_t busy,
                      const std::vector<std::pair<std::string, std::uint64_t>>& waits,
                      std::uint64_t total) {
  std::vector<hw::BlockAccount::Cause> causes;
  for (const auto& wait : waits) causes.push_back({wait.first, "a cause"});
  hw::BlockAccount account("cycles", std::move(causes));
  account.busy_until(busy);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    account.stall_until(account.now() + waits[i].second, i);
  }
  return account.report(std::move(name), total, {{"work", "things", "things done", 7}});
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

TEST(Text, WrapsAfterTheLabel) {
  FactList facts;
  facts.add("name", "short");
  facts.add("much", std::string(40, 'a') + " " + std::string(40, 'b'));
  EXPECT_EQ(facts.text(), "name  short\nmuch  " + std::string(40, 'a') + "\n      " +
                              std::string(40, 'b') + "\n");
}

TEST(Text, TableAlignsAndFits) {
  Table table("name | >n | words");
  table.add({"a", "1", "x"});
  table.add({"bcd", "1000", ""});
  EXPECT_EQ(table.text(), "name     n  words\na        1  x\nbcd   1000\n");

  Table wide("name | >n | words");
  std::string words;
  for (int i = 0; i < 40; ++i) words += "word" + std::to_string(i) + " ";
  wide.add({"beginning_" + std::string(90, 'x') + "_end", "12345", words});
  expect_fits(wide.text());
  EXPECT_NE(wide.text().find("word39"), std::string::npos);
  EXPECT_NE(wide.text().find("xxx_end"), std::string::npos);
  EXPECT_EQ(wide.text().find("beginning_" + std::string(90, 'x')), std::string::npos);
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

TEST(Measurement, TrafficIsThatOfAnInference) {
  SimulationResult result = result_of({1000, 1000, 1000, 1000});
  result.traffic = {4400, 88};
  const nlohmann::ordered_json document = to_json(measure({}, "model", 1, {}, std::move(result)));
  EXPECT_EQ(document["dram_read_bytes"], 1100);
  EXPECT_EQ(document["dram_write_bytes"], 22);
}

TEST(Measurement, CountersOfPartsBelongToTheirBlock) {
  SimulationResult result = result_of({1000});
  hw::BlockReport channel = block("channel1", 5, {{"row.miss", 2}}, 10);
  const hw::BlockReport port{"a.port", {}, {{"errors", "requests", "", 4}}, {}};
  result.blocks = {{"dram", {}, {{"reads", "requests", "of all channels", 3}}, {channel}},
                   {"bus", {}, {{"decode_errors", "requests", "", 1}}, {port}},
                   block("array", 1, {}, 1)};
  const nlohmann::ordered_json document = to_json(measure({}, "model", 1, {}, std::move(result)));
  EXPECT_EQ(document["counters"].dump(),
            R"({"bus":{"decode_errors":1,"a.port.errors":4},"dram":{"reads":3}})");
  EXPECT_EQ(document["blocks"]["dram.channel1"].dump(),
            R"({"unit":"cycles","busy":5,"stalled":{"row.miss":2},"idle":3,"total":10,)"
            R"("counters":{"work":7}})");
  EXPECT_EQ(document["blocks"]["array"]["counters"]["work"], 7);
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

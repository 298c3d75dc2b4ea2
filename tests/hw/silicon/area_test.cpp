#include "hw/silicon/area.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <string>

#include "hw/description/machine_file.h"
#include "hw/energy.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

namespace systole::hw {
namespace {

// One synthesis has made the defaults and the table of docs/rtl.md.
TEST(Area, LogicIsThatOfOurOwnSynthesis) {
  std::map<std::string, double> um2;
  const std::regex row("\\| `([a-z0-9_]+)` \\| \\d+ \\| \\d+ \\| (\\d+) \\|");
  for (const std::string& line : lines_of(read_file(source_path("docs/rtl.md")))) {
    std::smatch found;
    if (std::regex_match(line, found, row)) um2[found[1]] = std::stod(found[2]);
  }
  constexpr double kPes = 4 * 4, kColumns = 4, kLanes = 4, kMacs = 8;
  const Machine::Area area;
  EXPECT_DOUBLE_EQ(area.pe_um2, std::round(um2.at("systolic_array") / kPes));
  EXPECT_DOUBLE_EQ(area.split_pe_um2, std::round(um2.at("split_array") / kPes));
  EXPECT_DOUBLE_EQ(area.sum_um2, std::round(um2.at("accumulator_sram") / kColumns));
  EXPECT_DOUBLE_EQ(area.stage_um2, std::round(um2.at("requantizer") / kLanes));
  EXPECT_DOUBLE_EQ(area.gelu_um2, std::round(um2.at("i_gelu") / kLanes));
  EXPECT_DOUBLE_EQ(area.softmax_um2, std::round(um2.at("softmax_unit") / kLanes));
  EXPECT_DOUBLE_EQ(area.norm_um2, std::round(um2.at("layernorm_unit") / kLanes));
  constexpr double kDividerStages = 16;
  EXPECT_DOUBLE_EQ(area.divider_um2, kDividerStages * um2.at("serial_divider"));
  EXPECT_DOUBLE_EQ(area.mix_um2, std::round(um2.at("head_mix_line") / kMacs));
}

// As much as the arrays of one synthesis each: 15 % and 48 %.
TEST(Area, OfSplitMultipliersIsLargerTheMoreTheySplit) {
  Machine machine = find_machine("transformer");
  const double whole = area_of(machine).array;
  machine.array.split = ArraySplit::kWeights;
  EXPECT_NEAR(area_of(machine).array / whole, 1.146, 0.001);
  machine.array.split = ArraySplit::kBoth;
  EXPECT_NEAR(area_of(machine).array / whole, 1.482, 0.001);
}

TEST(Area, EveryBlockGrowsWithItsKeys) {
  const std::map<std::string, std::map<std::string, const char*>> keys = {
      {"transformer",
       {{"array", "array.rows=32"},
        {"scratchpad", "scratchpad.kib=128"},
        {"accumulator", "accumulator.ports=3"},
        {"postop", "postop.lanes=32"},
        {"preop", "preop.lanes=16"},
        {"rest", "area.rest_mm2=0.5"}}},
      {"gemmini", {{"l2", "l2.kib=1024"}, {"postop", "postop.max_stages=9"}}},
      {"tiny", {{"postop", "postop.divider=1"}}},
      {"vitcod", {{"attention", "attention.decoder_lines=32"}}},
      {"ita", {{"stream", "stream.units=32"}}}};
  for (const auto& [name, blocks] : keys) {
    const Machine machine = find_machine(name);
    const AreaReport before = area_of(machine);
    double sum = 0;
    for (const auto& part : before.parts()) sum += part.second;
    EXPECT_DOUBLE_EQ(sum, before.total()) << name;
    EXPECT_LE(before.memory, before.total()) << name;
    for (const auto& [block, setting] : blocks) {
      Machine larger = machine;
      set_key(larger, setting);
      const AreaReport after = area_of(larger);
      const auto parts = after.parts(), parts_before = before.parts();
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].first != block) continue;
        EXPECT_GT(parts[i].second, parts_before[i].second) << name << " " << setting;
      }
      EXPECT_GT(after.total(), before.total()) << name << " " << setting;
    }
  }
  EXPECT_EQ(area_of(find_machine("dfx")).total(), 0.0);
}

TEST(Area, WhatTheHostComputesNeedsNoUnits) {
  Machine machine = find_machine("transformer");
  const double with = area_of(machine).postop;
  machine.host.operators = HostOperators::kFloat;
  EXPECT_LT(area_of(machine).postop, with);
  EXPECT_DOUBLE_EQ(area_of(machine).postop, machine.postop.lanes * machine.postop.max_stages *
                                                machine.area.stage_um2 * 1e-6);
}

TEST(Area, FiguresThatAreGivenStay) {
  Machine machine = find_machine("gemmini");
  const Machine::Energy by_size = energy_table(machine);
  EXPECT_DOUBLE_EQ(by_size.scratchpad_byte_pj, sram_byte_pj(scratchpad_size(machine)));
  EXPECT_DOUBLE_EQ(by_size.accumulator_byte_pj, sram_byte_pj(accumulator_size(machine)));
  EXPECT_DOUBLE_EQ(by_size.l2_byte_pj, sram_byte_pj(l2_size(machine)));
  const AreaReport area = area_of(machine);
  EXPECT_DOUBLE_EQ(by_size.leakage_mw, 47.6 * area.memory + 21.8 * (area.total() - area.memory));
  for (const char* setting :
       {"energy.scratchpad_byte_pj=1.25", "energy.accumulator_byte_pj=2.5", "energy.l2_byte_pj=7",
        "energy.leakage_mw=3", "area.scratchpad_mm2=0.25", "area.accumulator_mm2=0.125",
        "area.l2_mm2=2"}) {
    set_key(machine, setting);
  }
  const Machine::Energy given = energy_table(machine);
  EXPECT_EQ(given.scratchpad_byte_pj, 1.25);
  EXPECT_EQ(given.accumulator_byte_pj, 2.5);
  EXPECT_EQ(given.l2_byte_pj, 7);
  EXPECT_EQ(given.leakage_mw, 3);
  const AreaReport fixed = area_of(machine);
  EXPECT_EQ(fixed.scratchpad, 0.25);
  EXPECT_DOUBLE_EQ(fixed.accumulator, 0.125 + 16 * machine.area.sum_um2 * 1e-6);
  EXPECT_EQ(fixed.l2, 2);
}

// A word of the accumulator is a sum for each column of the array, one of the scratchpad a byte for
// each row; codes make both wider.
TEST(SramSizes, AreThoseOfTheKeysAndTheirCodes) {
  Machine machine = find_machine("transformer");
  machine.array.rows = 16;
  machine.array.cols = 8;
  machine.scratchpad.kib = 64;
  machine.accumulator.kib = 32;
  EXPECT_EQ(scratchpad_size(machine).bytes, 64 * 1024);
  EXPECT_EQ(scratchpad_size(machine).word_bytes, 16);
  EXPECT_EQ(accumulator_size(machine).bytes, 32 * 1024);
  EXPECT_EQ(accumulator_size(machine).word_bytes, 4 * 8);
  for (const Protection protection : {Protection::kParity, Protection::kSecded}) {
    machine.scratchpad.protection = machine.accumulator.protection = protection;
    const double sums = accumulator_size(machine).word_bytes,
                 bytes = accumulator_size(machine).bytes;
    EXPECT_GT(sums, 4 * 8);
    EXPECT_DOUBLE_EQ(sums / (4 * 8), bytes / (32 * 1024)) << "the code is stored beside each word";
  }
}

TEST(SramSizes, PartialSumsOfEnginesHave26Bits) {
  Machine machine = find_machine("ita");
  machine.stream.length = 64;
  machine.stream.units = 16;
  EXPECT_DOUBLE_EQ(partial_sums_size(machine).bytes, 64 * 64 * 26 / 8.0);
  EXPECT_DOUBLE_EQ(partial_sums_size(machine).word_bytes, 16 * 26 / 8.0);
}

// Of every machine in the repository: registers and buffers below memory.
TEST(Area, AByteOnChipCostsLessThanInDram) {
  for (const char* name : {"gemmini", "transformer", "vitcod", "tiny", "survey"}) {
    const Machine::Energy table = energy_table(find_machine(name));
    EXPECT_GT(table.scratchpad_byte_pj, 0.1) << name;
    EXPECT_LT(table.scratchpad_byte_pj, table.dram_byte_pj / 10) << name;
    EXPECT_GT(table.accumulator_byte_pj, 0.1) << name;
    EXPECT_LT(table.accumulator_byte_pj, table.dram_byte_pj / 10) << name;
  }
}

}  // namespace
}  // namespace systole::hw

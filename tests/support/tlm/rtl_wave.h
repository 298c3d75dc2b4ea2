#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/tlm/fst_reader.h"

/// Blocks in RTL in the waveform of their system.
namespace systole::test {

inline std::string port_of(const std::string& block, const std::string& port) {
  const std::string kind = block.substr(block.rfind('.') + 1);
  return "rtl." + block + ".dut.systole_" + kind + "." + port;
}

/// Times at which a bit rises.
inline std::vector<std::uint64_t> rises(const Vcd& vcd, const std::string& path) {
  std::vector<std::uint64_t> times;
  for (const auto& change : vcd.changes(path)) {
    if (change.value == 1U) times.push_back(change.time);
  }
  return times;
}

/// Times at which operations begin.
inline std::vector<std::uint64_t> operations(const Vcd& vcd, const std::string& block) {
  std::vector<std::uint64_t> times;
  for (const auto& change : vcd.changes("rtl." + block + ".model.operation")) {
    if (change.value.value_or(0) != 0) times.push_back(change.time);
  }
  return times;
}

/// In every shown operation the cycles follow one another without a gap, each with a clock.
inline void expect_a_clock(const Vcd& vcd, const std::string& block, std::uint64_t period_ps) {
  const std::vector<std::uint64_t> begins = operations(vcd, block);
  ASSERT_FALSE(begins.empty()) << block;
  const auto& cycles = vcd.changes("rtl." + block + ".model.cycle");
  const std::string clock = port_of(block, "clk_i");
  std::uint64_t begin = 0;
  for (const auto& change : cycles) {
    if (!change.value) continue;
    if (std::binary_search(begins.begin(), begins.end(), change.time)) begin = change.time;
    ASSERT_EQ(change.time, begin + (*change.value - 1) * period_ps) << block;
    ASSERT_EQ(vcd.at(clock, change.time), 0U) << block;
    ASSERT_EQ(vcd.at(clock, change.time + period_ps / 2), 1U) << block;
  }
}

}  // namespace systole::test

// rtl/array/systole_accumulator_sram.sv against hw/array/accumulator.h: sums bit by bit, cycles
// exactly.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vaccumulator_sram_4x1_checked.h"
#include "base/error.h"
#include "testbench/rtl/array/accumulator_sram_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

using Write = AccumulatorSramRtl::Write;
using Read = AccumulatorSramRtl::Read;
using Pins = AccumulatorSramRtl::Pins;
using Cycles = AccumulatorSramRtl::Cycles;

struct SramSize {
  std::uint32_t cols, ports;
};
constexpr SramSize kSramSizes[] = {{4, 1}, {4, 2}, {8, 2}, {16, 2}};
constexpr std::uint64_t kMostRows = 2048;

class AccumulatorSram : public ::testing::TestWithParam<SramSize> {
 protected:
  using Random = std::mt19937_64;
  static RtlOptions checked() { return {true, {}, 5}; }

  static hw::AccumulatorBanks banks(std::uint64_t rows_per_bank) {
    return {2, GetParam().ports, rows_per_bank};
  }
  static std::uint32_t cols() { return GetParam().cols; }

  static void write_all(AccumulatorSramRtl& rtl, const hw::AccumulatorBanks& banks,
                        std::vector<std::int32_t>& sums) {
    std::vector<Write> writes(banks.banks * banks.rows_per_bank);
    for (std::size_t row = 0; row < writes.size(); ++row) {
      writes[row] = {row, sums.data() + row * cols()};
    }
    rtl.run(writes, {});
  }
};

/// What every cycle of the memory must show, by the rule of hw/array/accumulator.h, and the sums
/// that a read in that cycle must deliver. It gets the handshakes and knows no memory, no
/// pipeline and no forwarding.
class Rule {
 public:
  Rule(const hw::AccumulatorBanks& banks, std::uint32_t cols, std::vector<std::int32_t>& sums,
       const std::vector<Write>& writes)
      : banks_(banks), cols_(cols), sums_(sums), writes_(writes) {}

  void observe(const Pins& pins) {
    const auto bank = [&](std::uint64_t row) { return row / banks_.rows_per_bank; };
    const auto stage_in = [&](std::uint64_t b) { return staged_ && bank(staged_row_) == b; };
    EXPECT_EQ(pins.written, staged_);
    if (pins.write_valid) {
      const bool both = pins.accumulate && stage_in(bank(pins.write_row));
      EXPECT_EQ(pins.write_ready, !(both && banks_.ports == 1));
    }
    const bool accepted = pins.write_valid && pins.write_ready;
    std::uint64_t accesses = stage_in(bank(pins.read_row)) ? 1 : 0;
    if (accepted && pins.accumulate && bank(pins.write_row) == bank(pins.read_row)) ++accesses;
    const bool advance = !(pins.data_valid && !pins.data_ready);
    if (pins.read_valid) {
      EXPECT_EQ(pins.read_ready, advance && accesses < banks_.ports);
    }
    EXPECT_EQ(pins.data_valid, data_valid_);
    if (pins.read_valid && pins.read_ready) {
      const auto row = sums_.begin() + static_cast<std::ptrdiff_t>(pins.read_row * cols_);
      expected.insert(expected.end(), row, row + cols_);
    }
    if (advance) data_valid_ = pins.read_valid && pins.read_ready;
    if (accepted) apply(writes_.at(next_++));
    staged_ = accepted;
    staged_row_ = pins.write_row;
  }

  std::vector<std::int32_t> expected;  ///< of all reads so far

 private:
  void apply(const Write& write) {
    std::int32_t* sums = sums_.data() + write.row * cols_;
    for (std::uint32_t col = 0; col < cols_; ++col) {
      if ((write.mask >> col & 1) == 0) continue;
      hw::write_accumulator_row(sums + col, write.values + col, 1, write.accumulate);
    }
  }

  const hw::AccumulatorBanks banks_;
  const std::uint32_t cols_;
  std::vector<std::int32_t>& sums_;
  const std::vector<Write>& writes_;
  std::size_t next_ = 0;
  bool staged_ = false;
  bool data_valid_ = false;
  std::uint64_t staged_row_ = 0;
};

/// A few rows, written and read in any order at once, over and over: each sum is read in every
/// distance from its last writes.
void expect_rule(AccumulatorSramRtl& rtl, const hw::AccumulatorBanks& banks, std::uint32_t cols,
                 std::vector<std::int32_t>& sums, const std::vector<Write>& writes,
                 std::vector<Read> reads, const BackPressure& pressure) {
  std::vector<std::int32_t> data(reads.size() * cols);
  for (std::size_t i = 0; i < reads.size(); ++i) reads[i].values = data.data() + i * cols;
  Rule rule(banks, cols, sums, writes);
  const Cycles cycles =
      rtl.run(writes, reads, pressure, [&](const Pins& pins) { rule.observe(pins); });
  EXPECT_EQ(cycles.read.cycles,
            reads.empty() ? 0 : reads.size() + 1 + cycles.read.stalled + cycles.waited);
  ASSERT_EQ(data, rule.expected);
}

TEST_P(AccumulatorSram, EqualsTheModelUnderAnyMixOfAccesses) {
  const hw::AccumulatorBanks geometry = banks(3);
  const auto rtl = make_accumulator_sram(cols(), geometry, checked());
  Random random(11);
  std::vector<std::int32_t> sums(6 * cols());
  write_all(*rtl, geometry, sums);
  constexpr std::size_t kElements = 1'100'000;
  constexpr std::size_t kBlock = 4096;
  std::vector<std::int32_t> values(kBlock * cols());
  std::uint64_t written = 0;
  for (std::uint64_t round = 0; written < kElements; ++round) {
    std::vector<Write> writes;
    std::vector<Read> reads;
    std::generate(values.begin(), values.end(), [&] { return random_word(random); });
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::uint64_t draw = random();
      const std::uint32_t mask = draw % 4 == 0 ? static_cast<std::uint32_t>(random()) : 0xffffffffU;
      writes.push_back({draw / 4 % 6, values.data() + i * cols(), draw / 64 % 8 != 0, mask});
      reads.push_back({draw / 4096 % 6, nullptr});
    }
    const unsigned withheld = round % 2 == 0 ? 0 : 250;
    expect_rule(*rtl, geometry, cols(), sums, writes, reads, {withheld, withheld, round});
    if (HasFailure()) return;
    written += kBlock * cols();
  }
  EXPECT_FALSE(rtl->failed());
}

TEST_P(AccumulatorSram, AddsBackToBackIntoOneRow) {
  const hw::AccumulatorBanks geometry = banks(3);
  const auto rtl = make_accumulator_sram(cols(), geometry, checked());
  constexpr std::size_t kRows = 1000;
  const std::vector<std::int32_t> large(cols(), 0x7654'3210);
  std::vector<std::int32_t> data(cols());
  std::vector<Write> writes(kRows, {4, large.data(), true});
  writes.front().accumulate = false;
  const Cycles cycles = rtl->run(writes, {});
  EXPECT_EQ(cycles.write.cycles, GetParam().ports == 1 ? 2 * kRows : kRows + 1);
  rtl->run({}, {{4, data.data()}});
  const std::uint32_t sum = static_cast<std::uint32_t>(kRows) * 0x7654'3210U;
  EXPECT_EQ(data, std::vector<std::int32_t>(cols(), static_cast<std::int32_t>(sum)));
  EXPECT_FALSE(rtl->failed());
}

TEST_P(AccumulatorSram, KeepsEveryRowOfTheLargestMachine) {
  const hw::AccumulatorBanks geometry = banks(kMostRows);
  const auto rtl = make_accumulator_sram(cols(), geometry, checked());
  std::vector<std::int32_t> sums(2 * kMostRows * cols());
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = static_cast<std::int32_t>(i * 2654435761U);
  write_all(*rtl, geometry, sums);
  std::vector<std::int32_t> data(sums.size());
  std::vector<Read> reads;
  for (std::size_t row = 0; row < 2 * kMostRows; ++row) {
    reads.push_back({row, data.data() + row * cols()});
  }
  rtl->run({}, reads);
  EXPECT_EQ(data, sums);
  EXPECT_FALSE(rtl->failed());
}

/// A pair of streams, as the contract takes them.
struct Pair {
  hw::AccumulatorRows writes, reads;
  bool accumulate;
};

hw::AccumulatorRows random_stream(std::mt19937_64& random, std::uint64_t size) {
  const std::uint64_t stride = random() % 3 == 0 ? 1 + random() % 5 : 1;
  const std::uint64_t first = random() % size;
  const std::uint64_t most = (size - 1 - first) / stride + 1;
  return {first, random() % (most + 1), stride};
}

Cycles run_pair(AccumulatorSramRtl& rtl, const Pair& pair, const BackPressure& pressure,
                const AccumulatorSramRtl::Observer& observe = {}) {
  static const std::vector<std::int32_t> ones(16, 1);
  static std::vector<std::int32_t> data(16);
  std::vector<Write> writes;
  std::vector<Read> reads;
  for (std::uint64_t i = 0; i < pair.writes.rows; ++i) {
    writes.push_back({pair.writes.first + i * pair.writes.stride, ones.data(), pair.accumulate});
  }
  for (std::uint64_t i = 0; i < pair.reads.rows; ++i) {
    reads.push_back({pair.reads.first + i * pair.reads.stride, data.data()});
  }
  return rtl.run(writes, reads, pressure, observe);
}

class AccumulatorSramCycles : public AccumulatorSram {
 protected:
  /// Calls body(rtl, banks, pair, seed) for pairs of random streams over banks of several sizes.
  template <typename Body>
  void for_random_pairs(int pairs, Body body) {
    Random random(3);
    for (const std::uint64_t rows_per_bank : {1U, 2U, 7U, 16U, 40U}) {
      const hw::AccumulatorBanks geometry = banks(rows_per_bank);
      const auto rtl = make_accumulator_sram(cols(), geometry, checked());
      std::vector<std::int32_t> sums(2 * rows_per_bank * cols());
      write_all(*rtl, geometry, sums);
      for (int i = 0; i < pairs / 5 && !HasFailure(); ++i) {
        const Pair pair{random_stream(random, 2 * rows_per_bank),
                        random_stream(random, 2 * rows_per_bank), random() % 2 == 0};
        SCOPED_TRACE(::testing::Message()
                     << rows_per_bank << " rows per bank, " << pair.writes.rows << " writes from "
                     << pair.writes.first << " by " << pair.writes.stride
                     << (pair.accumulate ? " accumulating, " : ", ") << pair.reads.rows
                     << " reads from " << pair.reads.first << " by " << pair.reads.stride);
        body(*rtl, geometry, pair, random());
      }
      EXPECT_FALSE(rtl->failed());
    }
  }
};

TEST_P(AccumulatorSramCycles, OfTwoStreamsAreThoseOfTheContract) {
  int waiting = 0;
  int unhindered = 0;
  for_random_pairs(12'000, [&](auto& rtl, const auto& geometry, const Pair& pair, std::uint64_t) {
    const Cycles cycles = run_pair(rtl, pair, {});
    const hw::AccumulatorCycles contract =
        hw::accumulator_cycles(geometry, pair.writes, pair.accumulate, pair.reads);
    EXPECT_EQ(cycles.write.cycles, contract.write);
    EXPECT_EQ(cycles.read.cycles, contract.read);
    EXPECT_EQ(cycles.waited, contract.waited);
    EXPECT_EQ(cycles.write.stalled + cycles.read.stalled, 0U);
    ++(contract.waited > 0 ? waiting : unhindered);
  });
  EXPECT_GT(waiting, 1000);
  EXPECT_GT(unhindered, 1000);
}

TEST_P(AccumulatorSramCycles, OfALoneStreamGrowByTheCyclesItIsHeldUp) {
  std::uint64_t stalled = 0;
  for_random_pairs(10'000, [&](auto& rtl, const auto& geometry, Pair pair, std::uint64_t seed) {
    (seed % 2 == 0 ? pair.reads : pair.writes).rows = 0;
    const Cycles cycles = run_pair(rtl, pair, {300, 300, seed});
    const hw::AccumulatorCycles contract =
        hw::accumulator_cycles(geometry, pair.writes, pair.accumulate, pair.reads);
    EXPECT_EQ(cycles.write.cycles, contract.write + cycles.write.stalled);
    EXPECT_EQ(cycles.read.cycles, contract.read + cycles.read.stalled);
    stalled += cycles.write.stalled + cycles.read.stalled;
  });
  EXPECT_GT(stalled, 10'000U);
}

TEST_P(AccumulatorSramCycles, OfTwoStreamsThatAreHeldUpFollowTheRule) {
  const std::vector<std::int32_t> ones(16, 1);
  for_random_pairs(
      10'000, [&](auto& rtl, const auto& geometry, const Pair& pair, std::uint64_t seed) {
        std::vector<Write> writes;
        for (std::uint64_t i = 0; i < pair.writes.rows; ++i) {
          writes.push_back({pair.writes.first + i * pair.writes.stride, ones.data()});
        }
        std::vector<std::int32_t> sums(2 * geometry.rows_per_bank * cols());
        Rule rule(geometry, cols(), sums, writes);
        const Cycles cycles =
            run_pair(rtl, pair, {200, 300, seed}, [&](const Pins& pins) { rule.observe(pins); });
        // The array never waits for the reader; the reader for nothing but a port or its
        // surroundings.
        EXPECT_EQ(cycles.write.cycles,
                  hw::accumulator_cycles(geometry, pair.writes, pair.accumulate, {}).write +
                      cycles.write.stalled);
        EXPECT_EQ(cycles.read.cycles, hw::accumulator_cycles(geometry, {}, false, pair.reads).read +
                                          cycles.read.stalled + cycles.waited);
      });
}

std::string size_name(const ::testing::TestParamInfo<SramSize>& info) {
  return std::to_string(info.param.cols) + "x" + std::to_string(info.param.ports);
}
INSTANTIATE_TEST_SUITE_P(Sizes, AccumulatorSram, ::testing::ValuesIn(kSramSizes), size_name);
INSTANTIATE_TEST_SUITE_P(Sizes, AccumulatorSramCycles, ::testing::ValuesIn(kSramSizes), size_name);

TEST(AccumulatorSramRtl, OneStreamAtAFullBankKeepsTheReaderOutOfItAlone) {
  const RtlOptions checked{true, {}, 1};
  const hw::AccumulatorBanks geometry{2, 2, 64};
  const auto rtl = make_accumulator_sram(4, geometry, checked);
  const Pair same{{0, 32, 1}, {32, 32, 1}, true};
  EXPECT_EQ(run_pair(*rtl, same, {}).waited, 31U);
  const Pair other{{0, 32, 1}, {64, 32, 1}, true};
  EXPECT_EQ(run_pair(*rtl, other, {}).waited, 0U);
  const Pair overwriting{{0, 32, 1}, {32, 32, 1}, false};
  EXPECT_EQ(run_pair(*rtl, overwriting, {}).waited, 0U);
}

TEST(AccumulatorSramRtl, RefusesWhatIsNotBuilt) {
  const auto make = [](std::uint32_t cols, hw::AccumulatorBanks banks) {
    const auto rtl = make_accumulator_sram(cols, banks);
  };
  EXPECT_THROW(make(5, {2, 2, 16}), hw::InputError);
  EXPECT_THROW(make(16, {2, 1, 16}), hw::InputError);
  EXPECT_THROW(make(4, {4, 2, 16}), hw::InputError);
  EXPECT_THROW(make(4, {2, 2, kMostRows + 1}), hw::InputError);
  try {
    make(32, {2, 2, 16});
    ADD_FAILURE();
  } catch (const hw::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("4 x 1, 4 x 2, 8 x 2, 16 x 2"), std::string::npos);
  }
  const auto rtl = make_accumulator_sram(4, {2, 2, 16});
  std::vector<std::int32_t> data(4);
  EXPECT_THROW(rtl->run({}, {{32, data.data()}}), std::out_of_range);
}

/// The ports themselves, to break the protocol.
class AccumulatorSramProtocol : public ::testing::Test {
 protected:
  AccumulatorSramProtocol() {
    dut->write_valid_i = dut->read_valid_i = dut->accumulate_i = 0;
    dut->write_bank_i = dut->read_bank_i = 0;
    dut->write_row_i = dut->read_row_i = 0;
    dut->write_mask_i = 0;
    dut->data_ready_i = 1;
    for (std::size_t col = 0; col < 4; ++col) dut->write_data_i[col] = 0;
  }
  /// One port: a row that accumulates after another has to wait, and so has a read.
  void offer_two_rows() {
    dut->write_valid_i = dut->accumulate_i = 1;
    dut.tick();
    dut.settle();
    ASSERT_EQ(dut->write_ready_o, 0);
  }
  VerilatedDut<Vaccumulator_sram_4x1_checked> dut{RtlOptions{true, {}, 1}};
};

TEST_F(AccumulatorSramProtocol, ResetDropsTheRowUnderWayAndLeavesTheBanksAlone) {
  const auto accept = [&](std::uint32_t value) {
    for (std::size_t col = 0; col < 4; ++col) dut->write_data_i[col] = value;
    dut->write_mask_i = 0xf;
    dut->write_valid_i = 1;
    dut.tick();
    dut->write_valid_i = 0;
  };
  accept(5);
  dut.tick();
  accept(6);
  dut.reset();
  EXPECT_EQ(dut->written_o, 0);
  dut->read_valid_i = 1;
  dut.settle();
  ASSERT_EQ(dut->read_ready_o, 1);
  dut.tick();
  dut->read_valid_i = 0;
  EXPECT_EQ(dut->data_valid_o, 1);
  for (std::size_t col = 0; col < 4; ++col) EXPECT_EQ(dut->data_o[col], 5U);
}

TEST_F(AccumulatorSramProtocol, AllowsARowToWait) {
  offer_two_rows();
  for (int i = 0; i < 5; ++i) dut.tick();
  EXPECT_FALSE(dut.failed());
}

TEST_F(AccumulatorSramProtocol, ForbidsToWithdrawARow) {
  offer_two_rows();
  expect_assertion("WriteStable_A", dut, 1, [this] { dut->write_valid_i = 0; });
}

TEST_F(AccumulatorSramProtocol, ForbidsToChangeARowThatWaits) {
  offer_two_rows();
  expect_assertion("WriteStable_A", dut, 1, [this] { dut->write_row_i = 7; });
}

TEST_F(AccumulatorSramProtocol, ForbidsToWithdrawARead) {
  dut->write_valid_i = dut->accumulate_i = 1;
  dut->read_valid_i = 1;
  dut.settle();
  ASSERT_EQ(dut->read_ready_o, 0);
  expect_assertion("ReadStable_A", dut, 1, [this] { dut->read_valid_i = 0; });
}

}  // namespace
}  // namespace systole::testbench

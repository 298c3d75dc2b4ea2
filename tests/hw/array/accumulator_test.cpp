#include "hw/array/accumulator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "hw/machine/machine.h"

namespace systole::hw {
namespace {

constexpr AccumulatorBanks kOnePort{2, 1, 100};
constexpr AccumulatorBanks kTwoPorts{2, 2, 100};
constexpr AccumulatorBanks kThreePorts{2, 3, 100};
constexpr AccumulatorRows kNone{};

TEST(Accumulator, SumsWrapAround) {
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int32_t> values{1, -1, kMin, 5, 7};
  std::vector<std::int32_t> sums{kMax, kMin, kMin, -5, 1};
  write_accumulator_row(sums.data(), values.data(), 4, true);
  EXPECT_EQ(sums, (std::vector<std::int32_t>{kMin, kMax, 0, 0, 1}));
  write_accumulator_row(sums.data(), values.data(), 4, false);
  EXPECT_EQ(sums, (std::vector<std::int32_t>{1, -1, kMin, 5, 1}));
}

TEST(Accumulator, BanksHoldWholeRowsOfTheArray) {
  Machine machine;
  machine.array.cols = 16;
  machine.accumulator = {64, 2, 2};
  const AccumulatorBanks banks = accumulator_banks(machine);
  EXPECT_EQ(banks.banks, 2U);
  EXPECT_EQ(banks.ports, 2U);
  EXPECT_EQ(banks.rows_per_bank, 512U);
}

TEST(Accumulator, ALoneStreamTakesOneCycleMoreThanItHasRows) {
  for (const AccumulatorBanks& banks : {kOnePort, kTwoPorts, kThreePorts}) {
    EXPECT_EQ(accumulator_cycles(banks, {90, 20, 1}, false, kNone).write, 21U);
    EXPECT_EQ(accumulator_cycles(banks, kNone, false, {90, 20, 1}).read, 21U);
    EXPECT_EQ(accumulator_cycles(banks, kNone, true, kNone).write, 0U);
    EXPECT_EQ(accumulator_cycles(banks, kNone, true, kNone).read, 0U);
  }
}

TEST(Accumulator, AnAccumulatingRowTakesTheOnePortForTwoCycles) {
  EXPECT_EQ(accumulator_cycles(kTwoPorts, {0, 20, 1}, true, kNone).write, 21U);
  EXPECT_EQ(accumulator_cycles(kOnePort, {0, 20, 1}, true, kNone).write, 40U);
  EXPECT_EQ(accumulator_cycles(kOnePort, {90, 20, 1}, true, kNone).write, 39U)
      << "the other bank reads while the first one writes";
  EXPECT_EQ(accumulator_cycles(kOnePort, {95, 2, 50}, true, kNone).write, 3U);
}

// Rows 0 to 9 of the writer are accepted in cycles 0 to 9 and written in 1 to 10.
TEST(Accumulator, TheReaderGetsWhatTheWriterLeaves) {
  const auto read = [](const AccumulatorBanks& banks, bool accumulate, AccumulatorRows reads) {
    return accumulator_cycles(banks, {0, 10, 1}, accumulate, reads);
  };
  EXPECT_EQ(read(kTwoPorts, false, {50, 10, 1}).waited, 0U);
  EXPECT_EQ(read(kTwoPorts, true, {50, 10, 1}).waited, 9U);
  EXPECT_EQ(read(kTwoPorts, true, {50, 10, 1}).read, 20U);
  EXPECT_EQ(read(kTwoPorts, true, {50, 1, 1}).waited, 0U) << "the first row is not yet written";
  EXPECT_EQ(read(kTwoPorts, true, {150, 10, 1}).waited, 0U) << "in the other bank";
  EXPECT_EQ(read(kTwoPorts, true, {95, 10, 1}).waited, 9U);
  EXPECT_EQ(read(kOnePort, false, {50, 1, 1}).waited, 0U);
  EXPECT_EQ(read(kOnePort, false, {50, 10, 1}).waited, 10U);
  EXPECT_EQ(read(kOnePort, true, {50, 10, 1}).waited, 20U);
  EXPECT_EQ(read(kThreePorts, true, {50, 10, 1}).waited, 0U);
}

TEST(Accumulator, AReaderMeetsAWriterThatComesIntoItsBank) {
  // The writer is in bank 1 from cycle 5 on: accesses of both kinds in cycles 6 to 9.
  const AccumulatorRows writes{95, 10, 1};
  EXPECT_EQ(accumulator_cycles(kTwoPorts, writes, true, {150, 6, 1}).waited, 0U);
  EXPECT_EQ(accumulator_cycles(kTwoPorts, writes, true, {150, 7, 1}).waited, 4U);
  EXPECT_EQ(accumulator_cycles(kTwoPorts, writes, true, {150, 40, 1}).read, 45U);
}

TEST(Accumulator, RowsOutsideTheBanksAreRefused) {
  EXPECT_THROW(static_cast<void>(accumulator_cycles(kTwoPorts, {200, 1, 1}, false, kNone)),
               std::out_of_range);
  EXPECT_THROW(static_cast<void>(accumulator_cycles(kTwoPorts, kNone, false, {190, 11, 1})),
               std::out_of_range);
  EXPECT_NO_THROW(static_cast<void>(accumulator_cycles(kTwoPorts, {199, 1, 1}, true, kNone)));
}

}  // namespace
}  // namespace systole::hw

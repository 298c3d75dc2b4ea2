#include "hw/array/fold_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "hw/array/array.h"

namespace systole::hw {
namespace {

std::uint64_t at_once(std::uint64_t cycle, std::optional<std::uint64_t> /*a*/,
                      std::optional<std::uint64_t> /*b*/) {
  return cycle + 1;
}

Machine::Array random_array(std::mt19937_64& random) {
  Machine::Array array;
  array.rows = 2U << random() % 4;
  array.cols = 2U << random() % 4;
  array.overlap = static_cast<ArrayOverlap>(random() % 3);
  return array;
}

FoldCommand random_fold_command(std::mt19937_64& random) {
  FoldCommand command;
  command.m = 1 + random() % 40;
  command.n = 1 + random() % 40;
  command.k = 1 + random() % 40;
  command.c_pitch = 100;
  return command;
}

/// What the model's array says of commands that become ready at some time (tlm/core/array_unit.cpp,
/// without conflicts), in its own cycles.
std::vector<FoldTimes> model_times(const Machine::Array& array,
                                   const std::vector<FoldCommand>& commands,
                                   const std::vector<std::uint64_t>& ready) {
  std::vector<FoldTimes> times;
  std::uint64_t free = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::uint64_t started = std::max(ready[i], free);
    const bool continues = i != 0 && array.overlap != ArrayOverlap::kNone && free == started;
    const std::uint64_t ahead = started - ready[i];
    const std::uint64_t exposed =
        continues ? array.rows - std::min<std::uint64_t>(array.rows, ahead) : 0;
    const ArrayCycles cycles =
        array_cycles(array, commands[i].m, commands[i].n, commands[i].k, continues);
    free = started + cycles.interval + exposed;
    times.push_back({free, free, started + cycles.latency + 1 + exposed});
  }
  return times;
}

// Without conflicts the gates' operands are read a cycle later than the model's array takes them,
// their sums come another cycle later, and nothing else differs.
TEST(FoldStream, TakesTheModelsCyclesWhereNothingIsInItsWay) {
  std::mt19937_64 random(4);
  std::size_t hidden = 0, late = 0;
  for (int i = 0; i < 400; ++i) {
    const Machine::Array array = random_array(random);
    std::vector<FoldCommand> commands(1 + random() % 6);
    std::vector<std::uint64_t> ready(commands.size());
    std::uint64_t last = 0;
    for (std::size_t c = 0; c < commands.size(); ++c) {
      commands[c] = random_fold_command(random);
      ready[c] = last += random() % 3 == 0 ? random() % 900 : random() % 20;
    }
    FoldSchedule schedule;
    for (std::size_t c = 0; c < commands.size(); ++c) {
      const std::uint64_t free = c == 0 ? 0 : schedule.times[c - 1].free;
      commands[c].started = std::max(ready[c], free);
      schedule = fold_times(array, {commands.begin(), commands.begin() + static_cast<int>(c) + 1},
                            at_once);
    }
    const std::vector<FoldTimes> model = model_times(array, commands, ready);
    for (std::size_t c = 0; c < commands.size(); ++c) {
      ASSERT_EQ(schedule.times[c].completed, model[c].completed + 2) << i << " command " << c;
      // The array of the model is busy until it could take the next rows, short folds or not.
      ASSERT_LE(schedule.times[c].released, model[c].released + 1) << i << " command " << c;
      hidden += c != 0 && commands[c].started + array.rows < model[c - 1].free ? 1 : 0;
      late += c != 0 && ready[c] > model[c - 1].free ? 1 : 0;
    }
  }
  EXPECT_GT(hidden, 100U) << "commands whose first weights came in while the one before ran";
  EXPECT_GT(late, 60U) << "commands before which the array was idle";
}

// B stored transposed: its columns of C are read before its weights, beside whatever else goes on.
// The transposer holds two folds, so that only the first one of a command waits for it.
TEST(FoldStream, FillsTheTransposerWhileAnotherFoldLeavesIt) {
  Machine::Array array;
  array.rows = array.cols = 8;
  std::mt19937_64 random(6);
  for (int i = 0; i < 100; ++i) {
    FoldCommand command = random_fold_command(random);
    command.k = 1 + random() % 8;
    const std::uint64_t columns = std::min<std::uint64_t>(command.n, 8);
    const auto run = [&](bool transposed) {
      command.b_transposed = transposed;
      return fold_times(array, {command}, at_once);
    };
    EXPECT_EQ(run(true).times[0].completed, run(false).times[0].completed + columns + 1) << i;
  }
}

// What the transposer reads: a row of memory for each column of the tile, and no weights after
// that.
TEST(FoldStream, ReadsTheColumnsOfATransposedTileOnce) {
  Machine::Array array;
  array.rows = array.cols = 4;
  FoldCommand command;
  command.m = 2;
  command.n = 6;
  command.k = 5;
  command.b = 100;
  command.b_pitch = 10;
  command.b_transposed = true;
  std::vector<std::uint64_t> reads;
  (void)fold_times(array, {command}, [&](std::uint64_t cycle, auto /*a*/, auto b) {
    if (b) reads.push_back(*b);
    return cycle + 1;
  });
  const std::vector<std::uint64_t> expected = {100, 110, 120, 130, 104, 114,
                                               124, 134, 140, 150, 144, 154};
  EXPECT_EQ(reads, expected);
}

// A fold of one row, in a memory that takes ten cycles for a row of B: the array stands still.
TEST(FoldStream, StandsStillWhileAReadIsNotServed) {
  Machine::Array array;
  array.rows = array.cols = 4;
  FoldCommand command;
  command.m = 3;
  command.n = command.k = command.a_pitch = 4;
  const FoldSchedule quick = fold_times(array, {command}, at_once);
  const FoldSchedule slow =
      fold_times(array, {command}, [](std::uint64_t cycle, auto a, auto /*b*/) {
        return cycle + (a && *a == 0 ? 11 : 1);  // the first row of A
      });
  EXPECT_EQ(slow.times[0].free, quick.times[0].free) << "weights were read before";
  EXPECT_EQ(slow.times[0].released, quick.times[0].released + 10);
  EXPECT_EQ(slow.times[0].completed, quick.times[0].completed + 10);
}

// Sums at the edge of the array leave while it waits for the next command's weights.
TEST(FoldStream, HandsOverSumsInAWait) {
  Machine::Array array;
  array.rows = array.cols = 4;
  std::vector<FoldCommand> commands(2);
  commands[0].m = commands[0].n = commands[0].k = 4;
  commands[1] = commands[0];
  commands[1].b = 1;  // served late
  // In the last cycle before the first sums leave.
  commands[1].started = fold_times(array, {commands[0]}, at_once).sums[0].cycle - 2;
  const auto sums_with = [&](std::uint64_t wait) {
    return fold_times(array, commands,
                      [wait](std::uint64_t cycle, auto /*a*/, auto b) {
                        return cycle + 1 + (b && *b == 1 ? wait : 0);
                      })
        .sums;
  };
  const std::vector<SumWrite> quick = sums_with(0), slow = sums_with(20);
  EXPECT_EQ(slow[0].cycle, quick[0].cycle);
  EXPECT_EQ(slow[1].cycle, quick[1].cycle + 20);
}

}  // namespace
}  // namespace systole::hw

#include "hw/dma/store_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/postop/result_cycles.h"
#include "tests/hw/dma/store_case.h"
#include "tests/hw/postop/random_chain.h"

namespace systole::hw {
namespace {

using test::nothing_around;
using test::store_params;

/// A move that is dispatched in the cycle in which it starts.
StoreCommand move_at(std::uint64_t started, std::uint64_t m, std::uint64_t n) {
  StoreCommand move;
  move.started = move.dispatched = move.readable = started;
  move.move = true;
  move.m = m;
  move.n = n;
  return move;
}

std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

Chain random_store_chain(test::Random& random) {
  Chain chain;
  chain.out = static_cast<DType>(random() % kDTypes);
  for (std::size_t i = random() % 4; i > 0; --i) {
    Stage stage;
    stage.op = random() % 2 == 0 ? StageOp::kAdd : StageOp::kRequantise;
    stage.operand = random() % 2 == 0 ? Operand::kImmediate : Operand::kChannel;
    chain.stages.push_back(stage);
  }
  if (random() % 2 == 0) {
    const StageOp op = random() % 2 == 0 ? StageOp::kSoftmax : StageOp::kLayerNorm;
    chain.stages.push_back(test::random_stage(random, op));
  }
  return chain;
}

// A move with the pipeline to itself: in fill and m rows (ChainCycles, a cycle of the accumulator,
// and the pieces), and what comes before. The last sums are read a drain before the last results
// leave.
TEST(StoreSchedule, TakesTheModelsCyclesAndWhatItNamesBesides) {
  test::Random random(3);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t lanes = 4U << random() % 3;
    const std::uint64_t word = std::min<std::uint64_t>(lanes, 4U << random() % 3);
    const Chain chain = random_store_chain(random);
    const std::uint64_t started = random() % 50, m = 1 + random() % 20;
    const StoreCommand move = move_at(started, m, 1 + random() % 60);
    const StoreTimes times =
        store_times({chain}, {move}, store_params(lanes, word), nothing_around()).times[0];
    const ChainCycles cycles =
        chain_cycles(chain, move.m, move.n, static_cast<std::uint32_t>(lanes));
    std::uint64_t loads = 9 * chain.stages.size(), parameters = 0, pieces = 0;  // of a row
    for (std::uint64_t column = 0; column < move.n; column += lanes) {
      const std::uint64_t width = std::min(lanes, move.n - column);
      parameters += parameter_words(chain) * divided_up(4 * width, word);
      pieces += divided_up(width * bytes_of(chain.out), word) - 1;
    }
    loads = std::max(loads, parameters);
    const auto units = static_cast<std::uint32_t>(lanes);
    EXPECT_EQ(piece_cycles(chain, move.n, units, word), pieces) << i;
    const std::uint64_t model = move.started + 1 + cycles.total(move.m);
    EXPECT_EQ(times.completed, model + 1 + loads + move.m * pieces) << i;
    EXPECT_EQ(times.free, times.completed) << i;
    EXPECT_LE(times.released, times.completed) << i;
    const std::uint64_t drained =
        times.released +
        result_cycles(cycles, chain, move.m, move.n, units, word, kAccumulatorReadCycles).drain;
    const std::uint64_t off =
        std::max(drained, times.completed) - std::min(drained, times.completed);
    // Stalls of vectors that are not all in the stages yet are only estimated.
    EXPECT_LE(off, pieces == 0 ? 0U : 8U) << i;
  }
}

// A tile of 3 x 20 bytes in requests of up to 64: three of them, one a cycle, each in five beats. A
// vector is used in the cycle after its beat is there, the first one in the cycle after the
// micro-code otherwise.
TEST(StoreSchedule, WaitsForATensorOperand) {
  Chain chain;
  chain.stages.resize(1);
  StoreCommand move = move_at(5, 3, 20);
  move.tensors[0] = {128, 64};
  const auto completed = [&] {
    return store_times({chain}, {move}, store_params(4, 4), nothing_around()).times[0].completed;
  };
  const std::uint64_t without = completed();
  chain.stages[0].operand = Operand::kTensor;
  chain.stages[0].tensor = DType::kS8;
  const StoreSchedule with = store_times({chain}, {move}, store_params(4, 4), nothing_around());
  ASSERT_EQ(with.operands.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(with.operands[i].issued, move.started + i);
    EXPECT_EQ(with.operands[i].address, 128 + 64 * i);
    EXPECT_EQ(with.operands[i].bytes, 20U);
  }
  const std::uint64_t there = move.started + 30 - 4, code = move.started + 1 + 9;
  const std::uint64_t deeper = stage_latency(chain.stages[0]) - stage_latency(Stage{});
  EXPECT_EQ(with.times[0].completed, without + (there + 1 - code) + deeper);
}

// The requests for the second tile, of 3 x 40 bytes, follow those for the first without a gap.
TEST(StoreSchedule, ReadsASecondTensorBehindTheFirst) {
  Chain chain;
  chain.stages.resize(2);
  for (Stage& stage : chain.stages) stage.operand = Operand::kTensor;
  chain.stages[0].tensor = DType::kS8;
  chain.stages[1].tensor = DType::kS16;
  StoreCommand move = move_at(5, 3, 20);
  move.tensors = {{{128, 64}, {1024, 128}}};
  const StoreSchedule two = store_times({chain}, {move}, store_params(4, 4), nothing_around());
  ASSERT_EQ(two.operands.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    // Four may be in flight, each for 30 cycles.
    EXPECT_EQ(two.operands[i].issued, move.started + i + (i < 4 ? 0 : 26)) << i;
    EXPECT_EQ(two.operands[i].address, i < 3 ? 128 + 64 * i : 1024 + 128 * (i - 3));
    EXPECT_EQ(two.operands[i].bytes, i < 3 ? 20U : 40U);
  }
  chain.stages[1] = Stage{};
  const StoreSchedule one = store_times({chain}, {move}, store_params(4, 4), nothing_around());
  // Of the first tile alone a vector is used in each cycle from its first beat on. With the second,
  // whose vectors have two beats, row 1 ends with its request, and row 2 follows.
  const std::uint64_t later = (two.operands[4].done + 1 + 5) - (one.operands[0].done - 4 + 15);
  const std::uint64_t deeper = stage_latency({StageOp::kAdd, Operand::kTensor}) - 1;
  EXPECT_EQ(two.times[0].completed, one.times[0].completed + later + deeper);
}

// One divider: a row of one vector is divided when its reciprocal is there, every 15 cycles.
TEST(StoreSchedule, DividesARowEveryFifteenCycles) {
  const Chain chain{{default_stage(StageOp::kDivideRowSum)}, DType::kS32};
  const auto completed = [&](std::uint64_t rows, std::uint64_t columns) {
    const StoreCommand move = move_at(0, rows, columns);
    return store_times({chain}, {move}, store_params(4, 16), nothing_around()).times[0].completed;
  };
  const std::uint64_t one = completed(1, 4);
  EXPECT_EQ(one, 16U + stage_latency(chain.stages[0]) + 1) << "its reciprocal is the last to come";
  for (std::uint64_t rows = 2; rows < 9; ++rows) {
    EXPECT_EQ(completed(rows, 4), one + 15 * (rows - 1));
    EXPECT_EQ(completed(rows, 80), completed(1, 80) + 20 * (rows - 1)) << "hidden";
  }
}

// Three serial units: 23 cycles to the squares about the mean, 17 each for root and reciprocal. A
// row of one vector waits for the first of these, every 23 cycles.
TEST(StoreSchedule, NormalisesAPartOfARowEveryTwentyThreeCycles) {
  const Chain chain{{default_stage(StageOp::kLayerNormApply)}, DType::kS32};
  const auto completed = [&](std::uint64_t rows, std::uint64_t columns) {
    const StoreCommand move = move_at(0, rows, columns);
    return store_times({chain}, {move}, store_params(4, 16), nothing_around()).times[0].completed;
  };
  const std::uint64_t one = completed(1, 4);
  EXPECT_EQ(one, 1U + 23 + 17 + 17 + stage_latency(chain.stages[0]) + 1);
  for (std::uint64_t rows = 2; rows < 9; ++rows) {
    EXPECT_EQ(completed(rows, 4), one + 23 * (rows - 1));
    EXPECT_EQ(completed(rows, 120), completed(1, 120) + 30 * (rows - 1)) << "hidden";
  }
}

// It is a result, too.
TEST(StoreSchedule, LetsTheNextCommandStartWhenASideOutputIsThere) {
  Chain chain;
  chain.stages.resize(1);
  const StoreCommand move = move_at(0, 3, 20);
  const auto times = [&] {
    return store_times({chain}, {move}, store_params(4, 4), nothing_around()).times[0];
  };
  const StoreTimes without = times();
  chain.stages[0].side = Reduction::kSumSquares;
  const StoreTimes with = times();
  EXPECT_EQ(with.completed, without.completed + 4);
  EXPECT_EQ(with.released, without.released);
  EXPECT_EQ(without.free, without.completed);
  EXPECT_EQ(with.free, without.free + 4);
}

// The second of two commands has the first one's chain: its micro-code is there.
TEST(StoreSchedule, LoadsMicroCodeOnceForAChain) {
  Chain chain;
  chain.stages.resize(2);
  std::vector<StoreCommand> commands{move_at(0, 1, 1), move_at(200, 1, 1)};
  const auto length = [&](std::size_t other) {
    commands[1].chain = other;
    const StoreTimes times =
        store_times({chain, chain}, commands, store_params(4, 4), nothing_around()).times[1];
    return times.completed - 200;
  };
  EXPECT_EQ(length(1), length(0) + 18);
}

/// The second command of two with different chains starts `later` cycles after it is dispatched,
/// and `readable` says from when on. Returns the cycles from its start to its end.
std::uint64_t length_of_next(const Chain& chain, std::uint64_t later, std::uint64_t readable) {
  StoreCommand next = move_at(200, 3, 20);
  next.chain = 1;
  next.started = 200 + later;
  next.readable = readable;
  const std::vector<StoreCommand> commands{move_at(0, 1, 1), next};
  const StoreSchedule schedule =
      store_times({Chain{}, chain}, commands, store_params(4, 4), nothing_around());
  return schedule.times[1].completed - next.started;
}

// Whatever a command needs, it finds it there if it has been in the station for so long.
TEST(StoreSchedule, FetchesWhileACommandWaitsForItsSums) {
  test::Random random(5);
  for (int i = 0; i < 200; ++i) {
    Chain chain = random_store_chain(random);
    Stage residual;
    residual.operand = Operand::kTensor;
    residual.tensor = DType::kS8;
    if (random() % 2 == 0) chain.stages.insert(chain.stages.begin(), residual);
    const std::uint64_t whole = length_of_next(chain, 0, 0), least = length_of_next(chain, 900, 0);
    const std::uint64_t words = parameter_words(chain) * 5 * 4;  // of 4 bytes, for 5 vectors
    std::uint64_t loads = std::max<std::uint64_t>(9 * chain.stages.size(), words);
    if (tensor_operands(chain) != 0) loads = std::max<std::uint64_t>(loads, 30 - 4);
    EXPECT_EQ(least, whole - loads) << i;
    for (std::uint64_t later = 1; later < loads + 2; later += 7) {
      EXPECT_EQ(length_of_next(chain, later, 0), std::max(least, whole - later)) << i;
    }
  }
}

// Micro-code does not wait for what loads bring.
TEST(StoreSchedule, FetchesParametersWhenTheyMayBeRead) {
  Chain chain;
  chain.stages.resize(2);
  chain.stages[1].operand = Operand::kChannel;
  const std::uint64_t whole = length_of_next(chain, 0, 0), words = 20;
  const std::uint64_t code = 18;
  const std::uint64_t least = whole - words;
  EXPECT_EQ(length_of_next(chain, 100, 200), least);
  for (std::uint64_t before = 0; before < 30; ++before) {
    const std::uint64_t length = length_of_next(chain, 100, 300 - before);
    EXPECT_EQ(length, least + words - std::min(words, before)) << before << " " << code;
  }
}

// Those of the next command come into buffers of their own, while one without tensor operands runs
// its tile comes, too; micro-code comes when the stages are empty.
TEST(StoreSchedule, FetchesForTheNextCommandWhileOneRuns) {
  Chain bias, residual;
  bias.stages.resize(1);
  bias.stages[0].operand = Operand::kChannel;
  residual.stages.resize(1);
  residual.stages[0].operand = Operand::kTensor;
  residual.stages[0].tensor = DType::kS8;
  const std::vector<Chain> chains{bias, residual, residual};
  const auto after = [&](std::size_t first, std::size_t second) {
    StoreCommand one = move_at(0, 60, 20), two = move_at(0, 20, 20);
    one.chain = first;
    two.chain = second;
    const StoreSchedule both =
        store_times(chains, {one, two}, store_params(4, 4), nothing_around());
    return both.times[1].released - both.times[0].free;
  };
  const std::uint64_t rows = 1 + 100;  // a cycle after the start
  EXPECT_EQ(after(0, 0), rows) << "its own words, read beside the rows of the first";
  EXPECT_EQ(after(0, 1), rows + 9) << "micro-code";
  EXPECT_EQ(after(1, 0), rows + 9);
  EXPECT_GT(after(1, 1), rows + 40) << "the tile, for which there is one buffer";
  EXPECT_EQ(after(1, 1), after(1, 2)) << "micro-code beside it";
}

// Requests of a store leave when all of their bytes are there, and the last answer ends it.
TEST(StoreSchedule, EndsAStoreWithItsLastAnswer) {
  StoreCommand store;
  store.m = 2;
  store.n = 20;
  store.to = 60;
  store.to_pitch = 64;
  const StoreSchedule schedule =
      store_times({Chain{}}, {store}, store_params(4, 4), nothing_around());
  ASSERT_EQ(schedule.requests.size(), 4U);
  const std::uint64_t addresses[] = {60, 64, 124, 128}, bytes[] = {4, 16, 4, 16};
  std::uint64_t sent = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(schedule.requests[i].address, addresses[i]);
    EXPECT_EQ(schedule.requests[i].bytes, bytes[i]);
    // Sums are read from cycle 1 on, and a beat is in the queue two cycles after it was read.
    const std::uint64_t last_beat = 5 * (i / 2) + (i % 2 == 0 ? 1 : 5);
    EXPECT_EQ(schedule.requests[i].issued, last_beat + 2);
    sent = std::max(sent, last_beat + 2) + bytes[i] / 4;
    EXPECT_EQ(schedule.requests[i].sent, sent);
  }
  EXPECT_EQ(schedule.times[0].completed, schedule.requests[3].done);
}

}  // namespace
}  // namespace systole::hw

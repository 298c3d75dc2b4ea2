#include "hw/dma/store_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/hw/postop/random_chain.h"

namespace systole::hw {
namespace {

/// Nothing is in the way of anything.
StoreSurroundings nothing_around() {
  StoreSurroundings around;
  around.read_parameters = [](std::uint64_t cycle, std::uint64_t /*address*/) { return cycle + 1; };
  around.write = [](std::uint64_t cycle, std::uint64_t /*address*/, std::uint64_t /*bytes*/) {
    return cycle + 1;
  };
  around.no_port = [](std::uint64_t /*cycle*/, std::uint64_t /*at*/) { return false; };
  around.memory.takes = around.memory.takes_data = [](std::uint64_t /*cycle*/) { return true; };
  around.memory.done = [](const WriteRequest& request) { return request.sent + 10; };
  around.operands.takes = [](std::uint64_t /*cycle*/) { return true; };
  around.operands.done = [](const ReadRequest& request) { return request.issued + 30; };
  return around;
}

StoreParams store_params(std::uint64_t lanes, std::uint64_t beat_bytes) {
  const Machine::Dma dma;
  return {lanes,
          {RequestCut(dma), beat_bytes, 4, SlotOrder::kIssue, 2 * 64 / 4},
          {RequestCut(dma), 4, SlotOrder::kIssue, 2}};
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

// A move with the pipeline to itself. The model has it in fill and m rows (ChainCycles, and a cycle
// of the accumulator); the gates load micro-code and parameters before, begin a cycle later, and
// hand on a vector in as many cycles as it has words.
TEST(StoreSchedule, TakesTheModelsCyclesAndWhatItNamesBesides) {
  test::Random random(3);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t lanes = 4U << random() % 3;
    const std::uint64_t word = std::min<std::uint64_t>(lanes, 4U << random() % 3);
    const Chain chain = random_store_chain(random);
    StoreCommand move;
    move.move = true;
    move.started = random() % 50;
    move.m = 1 + random() % 20;
    move.n = 1 + random() % 60;
    const StoreTimes times =
        store_times({chain}, {move}, store_params(lanes, word), nothing_around()).times[0];
    const ChainCycles cycles =
        chain_cycles(chain, move.m, move.n, static_cast<std::uint32_t>(lanes));
    const std::uint64_t vectors = divided_up(move.n, lanes);
    const std::uint64_t loads = std::max<std::uint64_t>(
        9 * chain.stages.size(), parameter_words(chain) * vectors * 4 * lanes / word);
    std::uint64_t pieces = 0;  // of a row
    for (std::uint64_t column = 0; column < move.n; column += lanes) {
      pieces += divided_up(std::min(lanes, move.n - column) * bytes_of(chain.out), word);
    }
    const std::uint64_t model = move.started + 1 + cycles.total(move.m);
    EXPECT_EQ(times.completed, model + 1 + loads + move.m * (pieces - vectors)) << i;
    EXPECT_EQ(times.free, times.completed) << i;
    EXPECT_LE(times.released, times.completed) << i;
  }
}

// A tile of 3 x 20 bytes in requests of up to 64: three of them, one a cycle. Its vectors are used
// in the cycle after the last byte is there, which is the next one after the micro-code otherwise.
TEST(StoreSchedule, WaitsForATensorOperand) {
  Chain chain;
  chain.stages.resize(1);
  StoreCommand move;
  move.move = true;
  move.started = 5;
  move.m = 3;
  move.n = 20;
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
  const std::uint64_t there = move.started + 2 + 30, code = move.started + 1 + 9;
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
  StoreCommand move;
  move.move = true;
  move.started = 5;
  move.m = 3;
  move.n = 20;
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
  const std::uint64_t later = two.operands[5].done - one.operands[2].done;
  const std::uint64_t deeper = stage_latency({StageOp::kAdd, Operand::kTensor}) - 1;
  EXPECT_EQ(two.times[0].completed, one.times[0].completed + later + deeper);
}

// One divider: a row of one vector is divided when its reciprocal is there, every 15 cycles.
TEST(StoreSchedule, DividesARowEveryFifteenCycles) {
  const Chain chain{{default_stage(StageOp::kDivideRowSum)}, DType::kS32};
  const auto completed = [&](std::uint64_t rows, std::uint64_t columns) {
    StoreCommand move;
    move.move = true;
    move.m = rows;
    move.n = columns;
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
    StoreCommand move;
    move.move = true;
    move.m = rows;
    move.n = columns;
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
  StoreCommand move;
  move.move = true;
  move.m = 3;
  move.n = 20;
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
  std::vector<StoreCommand> commands(2);
  commands[0].move = commands[1].move = true;
  commands[1].started = 200;
  const auto length = [&](std::size_t other) {
    commands[1].chain = other;
    const StoreTimes times =
        store_times({chain, chain}, commands, store_params(4, 4), nothing_around()).times[1];
    return times.completed - 200;
  };
  EXPECT_EQ(length(1), length(0) + 18);
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

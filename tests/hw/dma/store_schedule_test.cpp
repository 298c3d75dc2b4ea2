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
  around.no_port = [](std::uint64_t /*cycle*/, std::uint64_t /*row*/) { return false; };
  around.memory.takes = around.memory.takes_data = [](std::uint64_t /*cycle*/) { return true; };
  around.memory.done = [](const WriteRequest& request) { return request.sent + 10; };
  return around;
}

StoreParams store_params(std::uint64_t lanes, std::uint64_t beat_bytes) {
  Machine::Dma dma;
  return {lanes, {RequestCut(dma), beat_bytes, 4, SlotOrder::kIssue, 2 * 64 / 4}};
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

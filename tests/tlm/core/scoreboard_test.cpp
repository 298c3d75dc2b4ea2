#include "tlm/core/scoreboard.h"

#include <gtest/gtest.h>

#include <vector>

#include "hw/program/dispatch.h"
#include "model/graph/stages.h"
#include "support/random/random_machine.h"

namespace systole::tlm_model {
namespace {

using hw::Command;
using hw::Opcode;

Command load(std::uint32_t to, std::uint64_t from = 0, std::uint32_t bytes = 16) {
  return test::load_command(to, from, bytes);
}
Command load_accumulator(std::uint32_t to) { return test::sums_command(to, 0, 4, hw::DType::kS32); }
/// 4 x 4 x 4: reads 16 bytes at `a` and at `b`, writes 16 elements at `c`.
Command matmul(std::uint32_t a, std::uint32_t b, std::uint32_t c, bool accumulate = false) {
  return test::matmul_command({4, 4, 4}, a, b, c, accumulate);
}
/// 4 x 4 elements of one byte; chain 0 has no stages, 1 a bias, 2 and 3 write and read row sums, 4
/// adds a tensor.
Command store(std::uint32_t c, std::uint64_t to, std::uint16_t chain = 0) {
  Command command = test::store_command(c, to, 4, 4);
  command.as<hw::cmd::Result>()->chain.chain = chain;
  return command;
}
Command move(std::uint32_t c, std::uint32_t to) { return test::move_command(c, to, 4, 4); }

hw::Program make_program() {
  const auto chain = [](const hw::Stage& stage) { return hw::Chain{{stage}, hw::DType::kS8}; };
  hw::Program program;
  program.chains = {hw::Chain{{}, hw::DType::kS8}, chain(model::bias_stage()),
                    chain(hw::default_stage(hw::StageOp::kSoftmax)),
                    chain(model::divide_row_sum_stage()),
                    chain(model::add_tensor_stage(hw::DType::kS8, {}, 8, hw::Rounding::kHalfUp))};
  return program;
}

enum class Wait { kNone, kUntilRead, kUntilDone };

class ScoreboardTest : public ::testing::Test {
 protected:
  /// How long the second of two commands waits for the first.
  Wait wait(const Command& older, const Command& younger) const {
    Scoreboard board(program_);
    Entry* const first = board.dispatch(older, 0, 10);
    Entry* const second = board.dispatch(younger, 1, 11);
    if (second->is_ready()) {
      EXPECT_FALSE(second->was_blocked);
      EXPECT_EQ(second->ready, 11U) << "its own dispatch";
      return Wait::kNone;
    }
    EXPECT_TRUE(second->was_blocked);
    const bool released = !board.release(first, 20).empty();
    EXPECT_EQ(second->is_ready(), released);
    const bool completed = !board.complete(first, 30).empty();
    EXPECT_NE(released, completed);
    EXPECT_TRUE(second->is_ready());
    EXPECT_EQ(second->ready, released ? 20U : 30U);
    EXPECT_EQ(second->last_blocker, hw::unit_of(older.opcode()));
    EXPECT_EQ(second->blocker_index, 0U);
    return released ? Wait::kUntilRead : Wait::kUntilDone;
  }

  const hw::Program program_ = make_program();
};

TEST_F(ScoreboardTest, ReadsWaitForTheWriteInEveryMemory) {
  EXPECT_EQ(wait(load(0), matmul(0, 100, 0)), Wait::kUntilDone) << "A";
  EXPECT_EQ(wait(load(100), matmul(0, 100, 0)), Wait::kUntilDone) << "B";
  EXPECT_EQ(wait(move(0, 100), matmul(0, 100, 64)), Wait::kUntilDone) << "scratchpad";
  EXPECT_EQ(wait(matmul(0, 100, 0), store(0, 0)), Wait::kUntilDone) << "accumulator";
  EXPECT_EQ(wait(load_accumulator(0), store(0, 64)), Wait::kUntilDone) << "accumulator";
  EXPECT_EQ(wait(store(0, 0), load(0, 0)), Wait::kUntilDone) << "DRAM";
  EXPECT_EQ(wait(load(0), store(0, 64, 1)), Wait::kUntilDone) << "parameters";
  EXPECT_EQ(wait(store(0, 0, 2), store(64, 64, 3)), Wait::kUntilDone) << "row sums";
  Command add = store(64, 64, 4);
  add.as<hw::cmd::Result>()->chain.tensor = {8, 4};
  EXPECT_EQ(wait(store(0, 0), add), Wait::kUntilDone) << "tensor operand";
}

TEST_F(ScoreboardTest, WritesWaitForTheReadInEveryMemory) {
  EXPECT_EQ(wait(matmul(0, 100, 0), load(0)), Wait::kUntilRead) << "A";
  EXPECT_EQ(wait(matmul(0, 100, 0), load(100)), Wait::kUntilRead) << "B";
  EXPECT_EQ(wait(store(0, 0), matmul(0, 100, 0)), Wait::kUntilRead) << "accumulator";
  EXPECT_EQ(wait(store(0, 64), load_accumulator(0)), Wait::kUntilRead) << "accumulator";
  EXPECT_EQ(wait(load(0, 0), store(0, 0)), Wait::kUntilRead) << "DRAM";
  EXPECT_EQ(wait(store(0, 0, 3), store(64, 64, 2)), Wait::kUntilRead) << "row sums";
  EXPECT_EQ(wait(store(0, 64, 1), load(0)), Wait::kUntilRead) << "parameters";
}

TEST_F(ScoreboardTest, WritesWaitForTheWriteInEveryMemory) {
  EXPECT_EQ(wait(load(0), load(8)), Wait::kUntilDone) << "scratchpad";
  EXPECT_EQ(wait(load(0), move(0, 0)), Wait::kUntilDone) << "scratchpad";
  EXPECT_EQ(wait(matmul(0, 100, 0), load_accumulator(12)), Wait::kUntilDone) << "accumulator";
  EXPECT_EQ(wait(store(0, 0), store(64, 15)), Wait::kUntilDone) << "DRAM";
  EXPECT_EQ(wait(store(0, 0, 2), store(64, 64, 2)), Wait::kUntilDone) << "row sums";
}

TEST_F(ScoreboardTest, ReadsDoNotWaitForReads) {
  EXPECT_EQ(wait(load(0, 0), load(16, 0)), Wait::kNone);
  EXPECT_EQ(wait(matmul(0, 100, 0), matmul(0, 100, 64)), Wait::kNone);
  EXPECT_EQ(wait(store(0, 0), store(0, 64)), Wait::kNone);
  EXPECT_EQ(wait(store(0, 0, 3), store(0, 64, 3)), Wait::kNone);
}

TEST_F(ScoreboardTest, TheArrayKeepsItsAccumulationsInOrder) {
  EXPECT_EQ(wait(matmul(0, 100, 0), matmul(0, 100, 0, true)), Wait::kNone);
  EXPECT_EQ(wait(matmul(0, 100, 0), matmul(0, 100, 0)), Wait::kNone);
}

TEST_F(ScoreboardTest, TouchingIsNotOverlapping) {
  EXPECT_EQ(wait(load(0), load(16)), Wait::kNone);
  EXPECT_EQ(wait(load(0), load(15)), Wait::kUntilDone);
  EXPECT_EQ(wait(store(0, 0), store(64, 16)), Wait::kNone);
  EXPECT_EQ(wait(store(0, 0), store(64, 15)), Wait::kUntilDone);
  EXPECT_EQ(wait(matmul(0, 100, 0), store(16, 0)), Wait::kNone) << "16 elements from 0";
  EXPECT_EQ(wait(matmul(0, 100, 0), store(15, 0)), Wait::kUntilDone);
}

TEST_F(ScoreboardTest, TheSameAddressInAnotherMemoryIsNoHazard) {
  EXPECT_EQ(wait(load(0, 1000), store(0, 0)), Wait::kNone);
  EXPECT_EQ(wait(load(0), load_accumulator(0)), Wait::kNone);
}

TEST_F(ScoreboardTest, AStrongerHazardWins) {
  // The matmul reads what the move writes and the move reads what the matmul writes.
  EXPECT_EQ(wait(matmul(0, 100, 0), move(0, 0)), Wait::kUntilDone);
}

TEST_F(ScoreboardTest, TheLastOfSeveralHazardsSetsTheTime) {
  Scoreboard board(program_);
  Entry* const a = board.dispatch(load(0), 0, 1);
  Entry* const b = board.dispatch(load(100), 1, 2);
  Entry* const product = board.dispatch(matmul(0, 100, 0), 2, 3);
  EXPECT_TRUE(board.complete(b, 40).empty());
  EXPECT_FALSE(product->is_ready());
  EXPECT_EQ(board.complete(a, 50), std::vector<Entry*>{product});
  EXPECT_EQ(product->ready, 50U);
  EXPECT_EQ(product->blocker_index, 0U);
  EXPECT_EQ(product->dispatched, 3U);
}

TEST_F(ScoreboardTest, WhatHasBeenReadBeforeDispatchIsNoHazard) {
  Scoreboard board(program_);
  Entry* const product = board.dispatch(matmul(0, 100, 0), 0, 1);
  EXPECT_TRUE(board.release(product, 5).empty());
  EXPECT_TRUE(board.dispatch(load(0), 1, 6)->is_ready()) << "its source is free";
  EXPECT_FALSE(board.dispatch(store(0, 0), 2, 7)->is_ready()) << "its result is not there";
}

TEST_F(ScoreboardTest, ReleaseWakesAllAndCompletionFreesTheEntry) {
  Scoreboard board(program_);
  EXPECT_TRUE(board.empty());
  Entry* const product = board.dispatch(matmul(0, 100, 0), 0, 1);
  Entry* const first = board.dispatch(load(0), 1, 2);
  Entry* const second = board.dispatch(load(100), 2, 3);
  EXPECT_EQ(board.in_flight(hw::Unit::kLoad), 2U);
  EXPECT_EQ(board.in_flight(hw::Unit::kCompute), 1U);
  EXPECT_EQ(board.release(product, 9), (std::vector<Entry*>{first, second}));
  EXPECT_TRUE(board.complete(product, 12).empty());
  EXPECT_EQ(board.in_flight(hw::Unit::kCompute), 0U);
  EXPECT_TRUE(board.complete(second, 13).empty()) << "out of order between entries is fine";
  EXPECT_TRUE(board.complete(first, 14).empty());
  EXPECT_TRUE(board.empty());
}

/// What a unit leaves in an entry.
void use(Entry& entry) {
  entry.loop = 7;
  entry.steps.begun = entry.steps.room = 8;
  entry.stalled.fill(9);
  entry.events.macs = entry.events.dram_bytes = 10;
}

/// Whether nothing of another command is in an entry that was just dispatched.
bool is_new(const Entry& entry, std::uint32_t index) {
  return entry.index == index && entry.loop == 0 && entry.operands_read == 0 &&
         entry.blocker_index == 0 && !entry.blocker_released &&
         entry.was_blocked == !entry.is_ready() && entry.last_blocker == hw::Unit::kLoad &&
         entry.ready == entry.dispatched && entry.readable == entry.dispatched &&
         entry.steps.begun == 0 && entry.steps.room == 0 && entry.stalled == Stalls{} &&
         entry.events.macs == 0 && entry.events.dram_bytes == 0;
}

// Against the plain meaning of "conflict": random commands, in every interleaving of events.
TEST_F(ScoreboardTest, NobodyIsReadyWhileAnOlderConflictStands) {
  test::Random random(1);
  const auto any = [&]() -> Command {
    const auto at = [&] { return 4 * test::between(random, 0, 20); };
    switch (random() % 5) {
      case 0:
        return load(at(), at());
      case 1:
        return load_accumulator(at());
      case 2:
        return matmul(at(), at(), at(), random() % 2 == 0);
      case 3:
        return store(at(), at(), static_cast<std::uint16_t>(random() % 4));
      default:
        return move(at(), at());
    }
  };
  struct Flying {
    Entry* entry;
    bool released;
    std::uint64_t readable;  ///< by the plain meaning
  };
  std::size_t waited = 0;
  for (int run = 0; run < 50; ++run) {
    Scoreboard board(program_);
    std::vector<Flying> flying;
    for (std::uint32_t step = 0; step < 200; ++step) {
      if (flying.size() < 12 && random() % 2 == 0) {
        flying.push_back({board.dispatch(any(), step, step), false, step});
        ASSERT_TRUE(is_new(*flying.back().entry, step)) << "run " << run << ", step " << step;
        use(*flying.back().entry);
      } else if (!flying.empty()) {
        // Only what is ready can run.
        Flying& one = flying[random() % flying.size()];
        if (!one.entry->is_ready()) continue;
        if (!one.released) {
          static_cast<void>(board.release(one.entry, step));
          one.released = true;
        } else {
          const std::vector<hw::Range> written = hw::ranges_of(one.entry->command, program_);
          for (Flying& other : flying) {
            if (&other <= &one || other.entry->unit != hw::Unit::kStore) continue;
            if (!hw::writes_what_is_read(written, hw::ranges_of(other.entry->command, program_))) {
              continue;
            }
            other.readable = step;
            ++waited;
          }
          static_cast<void>(board.complete(one.entry, step));
          flying.erase(flying.begin() + (&one - flying.data()));
        }
      }
      for (std::size_t j = 0; j < flying.size(); ++j) {
        const Command& younger = flying[j].entry->command;
        ASSERT_EQ(flying[j].entry->readable, flying[j].readable) << "run " << run;
        bool blocked = false;
        for (std::size_t i = 0; i < j; ++i) {
          const Command& older = flying[i].entry->command;
          for (const hw::Range& a : hw::ranges_of(older, program_)) {
            for (const hw::Range& b : hw::ranges_of(younger, program_)) {
              const bool in_array = older.opcode() == Opcode::kMatmul &&
                                    younger.opcode() == Opcode::kMatmul &&
                                    a.space == hw::Space::kAccumulator;
              if (hw::conflict(a, b) && !in_array && (a.write || !flying[i].released)) {
                blocked = true;
              }
            }
          }
        }
        ASSERT_EQ(flying[j].entry->is_ready(), !blocked) << "run " << run << ", step " << step;
      }
    }
  }
  EXPECT_GT(waited, 30U);
}

}  // namespace
}  // namespace systole::tlm_model

#include "hw/core/operand_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/core/bank_words.h"
#include "hw/core/fold_command.h"
#include "support/array/reads_case.h"

namespace systole::hw {
namespace {

/// What tlm/core/array_unit.cpp does: an action of it each time something is due.
class ModelArray {
 public:
  ModelArray(const ReadsCase& test, const std::vector<std::uint64_t>& ready)
      : test_(test), banks_(banks_of(test)), ready_(ready) {}

  std::vector<FoldTimes> run() {
    for (std::size_t c = 0; c < test_.matmuls.size(); ++c) run(c);
    while (!leaving_.empty()) leave();
    return times_;
  }
  std::uint64_t conflicts = 0;
  std::size_t hidden = 0, late = 0, in_between = 0;

 private:
  void run(std::size_t c) {
    const cmd::Matmul& matmul = test_.matmuls[c];
    const std::uint64_t started = std::max(ready_[c], free_);
    while (!leaving_.empty() && leaving_.front().left <= started) leave();
    number_ = c;
    stream_.begin(test_.machine, matmul, started, ready_[c], banks_);
    const ArrayCycles cycles = matmul_cycles(test_.machine.array, matmul, stream_.continues());
    std::uint64_t now = started + cycles.interval + stream_.exposed();
    for (;;) {
      while (!leaving_.empty() && leaving_.front().left <= now) leave();
      const std::uint64_t end = advance(now);
      if (end <= now) break;
      now = end;
    }
    free_ = now;
    conflicts += now - started - stream_.exposed() - cycles.interval;
    hidden += stream_.continues() && stream_.exposed() == 0 ? 1U : 0U;
    in_between += stream_.continues() && stream_.exposed() != 0 ? 1U : 0U;
    late += stream_.continues() ? 0U : 1U;
    times_.push_back({0, now, 0});
    const std::uint64_t moves = cycles.latency - cycles.interval;
    leaving_.push_back({c, stream_.end(now, moves), now + moves});
  }
  std::uint64_t advance(std::uint64_t now) {
    using Next = OperandStream::Next;
    return stream_.advance(banks_, now, [&]() -> std::optional<Next> {
      const std::size_t next = number_ + 1;
      if (next == ready_.size() || ready_[next] > now) return std::nullopt;
      return Next{&test_.matmuls[next], ready_[next]};
    });
  }
  void leave() {
    Leaving& first = leaving_.front();
    (void)advance(first.left);
    const std::uint64_t left = stream_.leaves(first.ended, first.left);
    if (left != first.left) {
      first.left = left;
      return;
    }
    times_[first.matmul].completed = left + kMatmulRegisterCycles + kAccumulatorWriteCycles;
    leaving_.pop_front();
  }

  struct Leaving {
    std::size_t matmul;
    std::uint64_t ended, left;
  };
  const ReadsCase& test_;
  const BankService banks_;
  const std::vector<std::uint64_t>& ready_;
  OperandStream stream_;
  std::size_t number_ = 0;
  std::uint64_t free_ = 0;
  std::deque<Leaving> leaving_;
  std::vector<FoldTimes> times_;
};

// Against gates that go on with the next one's weights while the last fold streams.
TEST(OperandStream, IsThatOfTheGates) {
  std::mt19937_64 random(15);
  std::uint64_t conflicts = 0;
  std::size_t hidden = 0, late = 0, in_between = 0;
  constexpr std::size_t kMatmuls = 5;
  for (int i = 0; i < 1'000; ++i) {
    const ReadsCase test = random_case(random, kMatmuls);
    const Machine::Array& array = test.machine.array;
    std::vector<std::uint64_t> ready(kMatmuls);
    std::uint64_t last = 0;
    for (std::uint64_t& cycle : ready) {
      cycle = last += random() % 3 == 0 ? random() % 400 : random() % 20;
    }
    ModelArray model(test, ready);
    const std::vector<FoldTimes> times = model.run();
    std::vector<FoldCommand> commands;
    FoldSchedule expected;
    for (std::size_t c = 0; c < kMatmuls; ++c) {
      const std::uint64_t free = c == 0 ? 0 : expected.times[c - 1].free;
      commands.push_back(fold_command(test.matmuls[c], std::max(ready[c], free)));
      expected = gates(test, commands);
    }
    for (std::size_t c = 0; c < kMatmuls; ++c) {
      const std::uint64_t after = tail(array, test.matmuls[c].m);
      const std::uint64_t released = expected.times[c].released + after;
      // Behind its last row of A it may still wait for the next one's weights.
      EXPECT_GE(times[c].released + 1, released) << i << " command " << c;
      if (after == 0) EXPECT_EQ(times[c].released + 1, released) << i << " command " << c;
      EXPECT_EQ(times[c].completed, expected.times[c].completed) << i << " command " << c;
    }
    conflicts += model.conflicts;
    hidden += model.hidden;
    in_between += model.in_between;
    late += model.late;
  }
  EXPECT_GT(conflicts, 100'000U);
  EXPECT_GT(hidden, 1'000U) << "first weights came in beside the matmul before";
  EXPECT_GT(in_between, 10U) << "some of them did";
  EXPECT_GT(late, 1'000U);
}

// In gates columns come as soon as the transposer has room. Those of the next matmul come here with
// the begin of the last fold: they are hidden as far, but meet others at other times.
TEST(OperandStream, OfTransposedOperandsIsNearlyThatOfTheGates) {
  std::mt19937_64 random(17);
  constexpr std::size_t kMatmuls = 5;
  double cycles = 0, off = 0, without = 0;
  for (int i = 0; i < 1'000; ++i) {
    ReadsCase test = random_case(random, kMatmuls);
    test.machine.array.overlap = ArrayOverlap::kFull;
    transpose_some(random, test);
    const BankService banks = banks_of(test);
    std::vector<FoldCommand> commands;
    std::uint64_t free = 0;
    OperandStream stream;
    FoldSchedule expected;
    for (std::size_t c = 0; c < kMatmuls; ++c) {
      const cmd::Matmul& matmul = test.matmuls[c];
      stream.begin(test.machine, matmul, free, 0, banks);
      free = stream.advance(banks, std::uint64_t{1} << 60);
      (void)stream.end(free, 0);
      commands.push_back(fold_command(matmul, c == 0 ? 0 : expected.times[c - 1].free));
      expected = gates(test, commands);
      without += static_cast<double>(
          steady_matmul_cycles(test.machine.array, matmul) -
          array_cycles(test.machine.array, matmul.m, matmul.n, matmul.k, true).interval);
    }
    const auto end = static_cast<double>(expected.times.back().released +
                                         tail(test.machine.array, test.matmuls.back().m));
    cycles += end;
    off += std::abs(static_cast<double>(free) + 1 - end);
  }
  EXPECT_LT(off, 0.006 * cycles);
  EXPECT_GT(without, 0.01 * cycles) << "what transposers take";
}

/// One fold of `rows` rows of A, in bank 0, and its weights in bank 1.
cmd::Matmul one_fold(std::uint32_t rows) {
  cmd::Matmul matmul;
  matmul.m = rows;
  matmul.n = matmul.k = 4;
  matmul.a = {0, 4};
  matmul.b = {4096, 4};
  return matmul;
}

Machine small_machine() {
  Machine machine;
  machine.array.rows = machine.array.cols = 4;
  machine.scratchpad.kib = 16;
  machine.scratchpad.banks = 4;
  return machine;
}

// Weights in cycles 0 to 3, rows of A from then on.
TEST(OperandStream, SaysWhatItLeavesOfABank) {
  OperandStream stream;
  BankService banks(4);
  (void)banks.serve(20, {BankAccess{2, false}, std::nullopt}, 3);
  stream.begin(small_machine(), one_fold(30), 0, 0, banks);
  EXPECT_EQ(stream.advance(banks, 100), 34U);
  // Reads of parameters are a cycle later than those of the array are said to be.
  EXPECT_EQ(stream.words_left(banks, 0, 1, 5), 4U);
  EXPECT_EQ(stream.words_left(banks, 0, 1, 35), 4U);
  EXPECT_EQ(stream.words_left(banks, 0, 10, 20), 0U);
  EXPECT_EQ(stream.words_left(banks, 0, 30, 41), 6U);
  EXPECT_EQ(stream.words_left(banks, 1, 1, 35), 30U);
  EXPECT_EQ(stream.words_left(banks, 2, 1, 35), 31U) << "others have used it";
  EXPECT_EQ(stream.words_left(banks, 3, 1, 35), 34U);
  EXPECT_EQ(stream.words_left(banks, 3, 5, 5), 0U);
}

// What is left of the last fold is counted once, with the weights of the next matmul beside it.
TEST(OperandStream, CountsWhatIsReadBesideTheNextWeightsOnce) {
  OperandStream stream;
  const BankService banks(4);
  stream.begin(small_machine(), one_fold(30), 0, 0, banks);
  ASSERT_EQ(stream.advance(banks, 34), 34U);
  ASSERT_TRUE(stream.takes_next());
  stream.take_next(one_fold(10), 14, banks);
  EXPECT_FALSE(stream.takes_next());
  EXPECT_EQ(stream.advance(banks, 34), 34U);
  EXPECT_EQ(stream.words_left(banks, 0, 1, 35), 4U);
  EXPECT_EQ(stream.words_left(banks, 1, 1, 35), 26U);
}

// The sums of a matmul wait while the next one waits for its weights.
TEST(OperandStream, HoldsUpTheMatmulBeforeAtTheBankOfTheNextWeights) {
  for (const bool blocked : {false, true}) {
    OperandStream stream;
    BankService banks(4);
    if (blocked) (void)banks.serve(32, {BankAccess{1, false}, std::nullopt}, 7);
    stream.begin(small_machine(), one_fold(30), 0, 0, banks);
    ASSERT_EQ(stream.advance(banks, 34), 34U);
    stream.take_next(one_fold(10), 31, banks);
    // One of its weights has come when the bank is taken.
    const std::uint64_t end = stream.advance(banks, 60);
    EXPECT_EQ(end, blocked ? 41U : 34U);
    const std::uint64_t ended = stream.end(end, 6);
    EXPECT_EQ(stream.leaves(ended, end), end + 6);
    stream.begin(small_machine(), one_fold(10), end, 31, banks);
    EXPECT_TRUE(stream.continues());
    EXPECT_EQ(stream.exposed(), 1U);
  }
  // And while they are on their way.
  OperandStream stream;
  BankService banks(4);
  (void)banks.serve(34, {BankAccess{1, false}, std::nullopt}, 7);
  stream.begin(small_machine(), one_fold(30), 0, 0, banks);
  ASSERT_EQ(stream.advance(banks, 34), 34U);
  stream.take_next(one_fold(10), 31, banks);
  ASSERT_EQ(stream.advance(banks, 34), 34U);
  const std::uint64_t ended = stream.end(34, 6);
  stream.begin(small_machine(), one_fold(10), 34, 31, banks);
  (void)stream.advance(banks, 40);
  EXPECT_EQ(stream.leaves(ended, 40), 46U);
  (void)stream.advance(banks, 46);
  EXPECT_EQ(stream.leaves(ended, 46), 47U);
}

}  // namespace
}  // namespace systole::hw

#include "hw/core/operand_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/core/bank_words.h"
#include "hw/core/fold_command.h"
#include "support/array/reads_case.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kAllKnown = std::uint64_t{1} << 60;

/// What tlm/core/array_unit.cpp does: an action of it each time something is due, or sooner. Of
/// others it knows what they have done by then.
class ModelArray {
 public:
  ModelArray(const ReadsCase& test, const std::vector<std::uint64_t>& ready)
      : test_(test),
        banks_(test.machine.scratchpad.banks, test.machine.scratchpad.ports),
        ready_(ready),
        stream_(test.machine) {}

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
    stream_.begin(matmul, started, ready_[c]);
    const std::uint64_t exposed = stream_.exposed();
    std::uint64_t now = started;
    for (;;) {
      while (!leaving_.empty() && leaving_.front().left <= now) leave();
      const std::uint64_t end = advance(now);
      if (end <= now) break;
      now = random_() % 2 == 0 ? end : std::min(end, now + 1 + random_() % 30);
    }
    free_ = now;
    conflicts += now - started - stream_.moved();
    hidden += stream_.continues() && exposed == 0 ? 1U : 0U;
    in_between += stream_.continues() && exposed != 0 ? 1U : 0U;
    late += stream_.continues() ? 0U : 1U;
    times_.push_back({0, now, 0});
    const std::uint64_t ended = stream_.end(now);
    leaving_.push_back({c, ended, stream_.leaves(ended, now)});
  }
  std::uint64_t advance(std::uint64_t now) {
    for (; known_ < test_.others.size() && test_.others[known_].from < now; ++known_) {
      add_words(banks_, test_.others[known_]);
    }
    using Next = OperandStream::Next;
    return stream_.advance(banks_, now, [&](std::size_t ahead) -> std::optional<Next> {
      const std::size_t next = number_ + ahead;
      if (next >= ready_.size() || ready_[next] > now) return std::nullopt;
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
  BankService banks_;
  std::size_t known_ = 0;
  const std::vector<std::uint64_t>& ready_;
  OperandStream stream_;
  std::mt19937_64 random_{5};
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
  for (int i = 0; i < 3'000; ++i) {
    const ReadsCase test = random_case(random, kMatmuls);
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
      ASSERT_EQ(times[c].released + 1, expected.times[c].released) << i << " command " << c;
      ASSERT_EQ(times[c].completed, expected.times[c].completed) << i << " command " << c;
    }
    conflicts += model.conflicts;
    hidden += model.hidden;
    in_between += model.in_between;
    late += model.late;
  }
  EXPECT_GT(conflicts, 300'000U);
  EXPECT_GT(hidden, 2'000U) << "first weights came in beside the matmul before";
  EXPECT_GT(in_between, 1'000U) << "some of them did";
  EXPECT_GT(late, 3'000U);
}

// The cycles of hw/array/array.h, whatever of a product is read twice a step. Where it is all that
// uses the banks, folds are passed over.
TEST(OperandStream, TakesTheCyclesOfTheArrayWhereNothingIsInItsWay) {
  std::mt19937_64 random(14);
  for (int i = 0; i < 2'000; ++i) {
    const auto [machine, matmul] = random_apart(random, Dataflow::kWeightStationary, 4);
    const ArrayCycles cycles = matmul_cycles(machine.array, matmul, false);
    for (const bool alone : {true, false}) {
      BankService banks(4, 2);
      // Something far away, so that no fold is passed over as a whole.
      if (!alone) (void)banks.serve(random() % 40, {BankAccess{0, false}, std::nullopt}, 1);
      OperandStream stream(machine);
      stream.begin(matmul, 7, 7);
      const std::uint64_t end = stream.advance(banks, kAllKnown);
      const std::uint64_t left = stream.leaves(stream.end(end), end);
      // Of a transposed B on a wide array it counts all tiles as wide.
      const bool is_wide = matmul.b_transposed && machine.array.cols > machine.array.rows;
      if (!is_wide) EXPECT_GE(left, 7 + cycles.latency) << i;
      EXPECT_LE(left, 7 + cycles.latency + (!alone && matmul.b_int4 ? 1 : 0)) << i;
    }
  }
}

TEST(OperandStream, OfBothOperandsInOneBankTakesTurns) {
  Machine machine;
  machine.array.rows = machine.array.cols = 8;
  machine.scratchpad.kib = 16;
  machine.scratchpad.banks = 1;
  cmd::Matmul matmul;
  matmul.m = 20;
  matmul.n = matmul.k = 16;
  matmul.a = {0, 16};
  matmul.b = {4096, 16};
  OperandStream stream(machine);
  stream.begin(matmul, 0, 0);
  // Four folds: the weights of three come in beside rows of A.
  EXPECT_EQ(stream.advance(BankService(1), kAllKnown), 8U + 4 * 20 + 3 * 8);
  EXPECT_FALSE(stream.bank());
  machine.scratchpad.ports = 2;
  OperandStream two_ports(machine);
  two_ports.begin(matmul, 0, 0);
  EXPECT_EQ(two_ports.advance(BankService(1, 2), kAllKnown), 8U + 4 * 20);
}

// One after the other, whatever gap is between them.
TEST(OperandStream, OfStationaryOutputsTakesTheCyclesOfTheArray) {
  std::mt19937_64 random(18);
  for (int i = 0; i < 500; ++i) {
    Machine machine;
    machine.array.rows = machine.array.cols = 4U << random() % 2;
    machine.array.dataflow = Dataflow::kOutputStationary;
    machine.array.overlap = static_cast<ArrayOverlap>(random() % 3);
    machine.scratchpad.kib = 16;
    machine.scratchpad.banks = 4;
    OperandStream stream(machine);
    BankService banks(4);
    std::uint64_t free = 0;
    for (int c = 0; c < 4; ++c) {
      cmd::Matmul matmul;
      matmul.m = static_cast<std::uint32_t>(1 + random() % 30);
      matmul.n = static_cast<std::uint32_t>(1 + random() % 30);
      matmul.k = static_cast<std::uint32_t>(1 + random() % 30);
      matmul.a = {0, 32};
      matmul.b = {4096, 32};
      const std::uint64_t started = free + (random() % 2 == 0 ? 0 : random() % 20);
      const std::uint64_t lost = random() % 2 == 0 ? 0 : 3;
      if (lost != 0) (void)banks.serve(started, {BankAccess{1, false}, std::nullopt}, lost);
      const ArrayCycles cycles = matmul_cycles(machine.array, matmul, false);
      stream.begin(matmul, started, started);
      EXPECT_FALSE(stream.continues());
      free = stream.advance(banks, kAllKnown);
      EXPECT_EQ(free, started + cycles.interval + lost);
      EXPECT_EQ(stream.moved(), cycles.interval);
      EXPECT_EQ(stream.leaves(stream.end(free), free), started + cycles.latency + lost);
    }
  }
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
  OperandStream stream(small_machine());
  BankService banks(4);
  (void)banks.serve(20, {BankAccess{2, false}, std::nullopt}, 3);
  stream.begin(one_fold(30), 0, 0);
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

/// Advances with a next matmul of 10 rows that is ready in cycle `ready`.
std::uint64_t advance_with_next(OperandStream& stream, const BankService& banks,
                                std::uint64_t until, std::uint64_t ready) {
  static const cmd::Matmul kNext = one_fold(10);
  using Next = OperandStream::Next;
  return stream.advance(banks, until, [&](std::size_t ahead) -> std::optional<Next> {
    if (ahead != 1 || ready > until) return std::nullopt;
    return Next{&kNext, ready};
  });
}

TEST(OperandStream, ReadsTheNextWeightsBesideRows) {
  OperandStream stream(small_machine());
  const BankService banks(4);
  stream.begin(one_fold(30), 0, 0);
  ASSERT_EQ(advance_with_next(stream, banks, 34, 14), 34U);
  EXPECT_EQ(stream.words_left(banks, 0, 1, 35), 4U);
  EXPECT_EQ(stream.words_left(banks, 1, 1, 35), 26U);
}

// The sums of a matmul wait while the next one waits for its weights.
TEST(OperandStream, HoldsUpTheMatmulBeforeAtTheBankOfTheNextWeights) {
  for (const bool blocked : {false, true}) {
    OperandStream stream(small_machine());
    BankService banks(4);
    if (blocked) (void)banks.serve(32, {BankAccess{1, false}, std::nullopt}, 7);
    stream.begin(one_fold(30), 0, 0);
    ASSERT_EQ(stream.advance(banks, 30), 34U);
    // One of its weights has come when the bank is taken.
    const std::uint64_t end = advance_with_next(stream, banks, 60, 31);
    EXPECT_EQ(end, blocked ? 41U : 34U);
    const std::uint64_t ended = stream.end(end);
    EXPECT_EQ(stream.leaves(ended, end), end + 6);
    stream.begin(one_fold(10), end, 31);
    EXPECT_TRUE(stream.continues());
    EXPECT_EQ(stream.exposed(), 1U);
  }
  // And while they are on their way.
  OperandStream stream(small_machine());
  BankService banks(4);
  (void)banks.serve(34, {BankAccess{1, false}, std::nullopt}, 7);
  stream.begin(one_fold(30), 0, 0);
  ASSERT_EQ(stream.advance(banks, 30), 34U);
  ASSERT_EQ(advance_with_next(stream, banks, 34, 31), 34U);
  const std::uint64_t ended = stream.end(34);
  stream.begin(one_fold(10), 34, 31);
  (void)stream.advance(banks, 40);
  EXPECT_EQ(stream.leaves(ended, 40), 46U);
  (void)stream.advance(banks, 46);
  EXPECT_EQ(stream.leaves(ended, 46), 47U);
}

}  // namespace
}  // namespace systole::hw

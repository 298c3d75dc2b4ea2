#include "hw/core/operand_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "hw/core/bank_words.h"
#include "support/array/model_array.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kAllKnown = std::uint64_t{1} << 60;

/// The sums that an array hands over, as far as they are known each time.
class SeenSums {
 public:
  std::vector<SumWrite> sums;
  bool is_early = false;  ///< some that next_sums() had not announced

  void look(std::uint64_t now, OperandStream& stream, const BankService& banks) {
    FoldSteps& steps = stream.steps();
    const SumRuns::Known known = steps.known(now);
    for (; asked_ < SumRuns::known_before(known); ++asked_) {
      const SumRuns::Sums& found = steps.sums().in(asked_, known, banks);
      if (!found.are_there) continue;
      sums.push_back({asked_, found.at, found.accumulate});
      is_early |= asked_ < announced_;
    }
    steps.sums().keep_from(asked_);
    const auto any = [](std::uint64_t /*first*/, std::uint64_t /*last*/) { return true; };
    announced_ = steps.next_sums(asked_, now, any).until;
  }

 private:
  std::uint64_t asked_ = 0, announced_ = 0;
};

/// Parameters anywhere, that are read with what is left.
class SeenParameters {
 public:
  explicit SeenParameters(const Machine& machine) : machine_(machine) {}

  void look(std::uint64_t now, const OperandStream& stream, const BankService& banks,
            std::mt19937_64& random) {
    if (now == 0 || random() % 3 != 0) return;
    Read read;
    const std::uint64_t bytes = std::uint64_t{machine_.scratchpad.kib} * 1024;
    const std::uint64_t rows = 1 + random() % 4, cols = 1 + random() % 20;
    // Half of them where a bank begins.
    const std::uint64_t bank = random() % machine_.scratchpad.banks;
    const std::uint64_t near = bank * machine_.scratchpad.bank_bytes() + 4 * (random() % 40);
    const std::uint64_t at =
        random() % 2 == 0 ? near - std::min<std::uint64_t>(near, 80) : 4 * (random() % (bytes / 4));
    const std::uint64_t most = bytes - 4 * rows * cols;
    read.words = {std::min(at, most), rows, cols, 4U << random() % 2,
                  scratchpad_word_bytes(machine_)};
    read.to = now + 1 - std::min<std::uint64_t>(now, random() % 3);
    read.from = read.to -
                std::min<std::uint64_t>(read.to - 1, random() % (random() % 2 == 0 ? 3'000 : 300));
    read.served = stream.read_words(banks, read.words, 0, read.from, read.to);
    reads_.push_back(read);
  }

  /// How many of the reads are not those of the banks, cycle by cycle.
  [[nodiscard]] std::size_t wrong(const BankService& gates) const {
    std::size_t wrong = 0;
    for (const Read& read : reads_) {
      std::uint64_t word = 0;
      for (std::uint64_t c = read.from; c < read.to && word < read.words.count(); ++c) {
        word += gates.is_free(c, read.words.access(word, machine_.scratchpad)) ? 1 : 0;
      }
      wrong += word != read.served ? 1 : 0;
    }
    return wrong;
  }
  [[nodiscard]] std::size_t reads() const { return reads_.size(); }

 private:
  struct Read {
    ParameterWords words;
    std::uint64_t from = 0, to = 0, served = 0;
  };
  const Machine machine_;
  std::vector<Read> reads_;
};

// Against gates that go on with the next one's weights while the last fold streams.
TEST(OperandStream, IsThatOfTheGates) {
  std::mt19937_64 random(15);
  std::uint64_t conflicts = 0;
  std::size_t hidden = 0, late = 0, in_between = 0, reads = 0;
  constexpr std::size_t kMatmuls = 5;
  for (int i = 0; i < 6'000; ++i) {
    const ReadsCase test = random_case(random, kMatmuls);
    const std::vector<std::uint64_t> ready = random_starts(random, kMatmuls);
    SeenSums seen;
    SeenParameters parameters(test.machine);
    ModelArray model(test, ready, [&](std::uint64_t now, OperandStream& stream, const auto& banks) {
      seen.look(now, stream, banks);
      parameters.look(now, stream, banks, random);
    });
    const std::vector<FoldTimes> times = model.run();
    BankService banks(1);
    const FoldSchedule expected = gates_from(test, ready, banks);
    ASSERT_EQ(parameters.wrong(banks), 0U) << i;
    reads += parameters.reads();
    for (std::size_t c = 0; c < kMatmuls; ++c) {
      ASSERT_EQ(times[c].released + 1, expected.times[c].released) << i << " command " << c;
      ASSERT_EQ(times[c].completed, expected.times[c].completed) << i << " command " << c;
    }
    ASSERT_EQ(seen.sums.size(), expected.sums.size()) << i;
    for (std::size_t s = 0; s < expected.sums.size(); ++s) {
      ASSERT_EQ(seen.sums[s].cycle, expected.sums[s].cycle) << i << " sums " << s;
      ASSERT_EQ(seen.sums[s].at, expected.sums[s].at) << i << " sums " << s;
      ASSERT_EQ(seen.sums[s].accumulate, expected.sums[s].accumulate) << i << " sums " << s;
    }
    EXPECT_FALSE(seen.is_early) << i;
    conflicts += model.conflicts;
    hidden += model.hidden;
    in_between += model.in_between;
    late += model.late;
  }
  EXPECT_GT(conflicts, 300'000U);
  EXPECT_GT(hidden, 2'000U) << "first weights came in beside the matmul before";
  EXPECT_GT(in_between, 1'000U) << "some of them did";
  EXPECT_GT(late, 3'000U);
  EXPECT_GT(reads, 40'000U);
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

/// Words of a bank of small_machine() that are left in the cycles [from, to), up to 256.
std::uint64_t words_left(const OperandStream& stream, const BankService& banks, std::uint64_t bank,
                         std::uint64_t from, std::uint64_t to) {
  const std::uint64_t bank_bytes = small_machine().scratchpad.bank_bytes();
  return stream.read_words(banks, {bank * bank_bytes, 16, 16, 4, 4}, 0, from, to);
}

// Weights in cycles 0 to 3, rows of A from then on.
TEST(OperandStream, SaysWhatItLeavesOfABank) {
  OperandStream stream(small_machine());
  BankService banks(4);
  (void)banks.serve(20, {BankAccess{2, false}, std::nullopt}, 3);
  stream.begin(one_fold(30), 0, 0);
  EXPECT_EQ(stream.advance(banks, 100), 34U);
  // Reads of parameters are a cycle later than those of the array are said to be.
  EXPECT_EQ(words_left(stream, banks, 0, 1, 5), 4U);
  EXPECT_EQ(words_left(stream, banks, 0, 1, 35), 4U);
  EXPECT_EQ(words_left(stream, banks, 0, 10, 20), 0U);
  EXPECT_EQ(words_left(stream, banks, 0, 30, 41), 6U);
  EXPECT_EQ(words_left(stream, banks, 1, 1, 35), 30U);
  EXPECT_EQ(words_left(stream, banks, 2, 1, 35), 31U) << "others have used it";
  EXPECT_EQ(words_left(stream, banks, 3, 1, 35), 34U);
  EXPECT_EQ(words_left(stream, banks, 3, 5, 5), 0U);
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
  EXPECT_EQ(words_left(stream, banks, 0, 1, 35), 4U);
  EXPECT_EQ(words_left(stream, banks, 1, 1, 35), 26U);
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

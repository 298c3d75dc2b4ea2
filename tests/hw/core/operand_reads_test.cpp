#include "hw/core/operand_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "hw/core/bank_words.h"
#include "hw/core/fold_command.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kAlways = std::uint64_t{1} << 60;

/// Words of others: a bank, from a cycle on.
struct OtherWords {
  std::uint64_t from = 0, count = 0;
  std::uint32_t bank = 0;
};

struct ReadsCase {
  Machine machine;
  std::vector<cmd::Matmul> matmuls;
  std::vector<OtherWords> others;
};

void add_words(BankService& banks, const OtherWords& words, std::uint64_t shift = 0) {
  const BankStep step{BankAccess{words.bank, false}, std::nullopt};
  (void)banks.serve(words.from + shift, step, words.count);
}

BankService banks_of(const ReadsCase& test, std::uint64_t shift = 0) {
  BankService banks(test.machine.scratchpad.banks, test.machine.scratchpad.ports);
  for (const OtherWords& words : test.others) add_words(banks, words, shift);
  return banks;
}

/// Tiles of whole words, anywhere.
cmd::Matmul random_product(std::mt19937_64& random, const Machine& machine) {
  const Machine::Array& array = machine.array;
  cmd::Matmul matmul;
  matmul.m = static_cast<std::uint32_t>(1 + random() % 40);
  matmul.n = static_cast<std::uint32_t>(array.cols * (1 + random() % 3));
  matmul.k = static_cast<std::uint32_t>(array.rows * (1 + random() % 3));
  const auto place = [&](LocalTile& tile, std::uint64_t rows, std::uint64_t bytes) {
    tile.pitch = static_cast<std::uint32_t>(bytes + random() % 3 * array.rows);
    const std::uint64_t room = std::uint64_t{machine.scratchpad.kib} * 1024 - rows * tile.pitch;
    tile.address = static_cast<std::uint32_t>(random() % room);
  };
  place(matmul.a, matmul.m, matmul.k);
  place(matmul.b, matmul.k, matmul.n);
  return matmul;
}

ReadsCase random_case(std::mt19937_64& random, std::size_t matmuls) {
  ReadsCase test;
  Machine& machine = test.machine;
  machine.array.rows = 4U << random() % 2;
  machine.array.cols = machine.array.rows;
  machine.array.overlap = static_cast<ArrayOverlap>(random() % 3);
  machine.scratchpad.kib = 16;
  machine.scratchpad.banks = 1U << random() % 3;
  for (std::size_t i = 0; i < matmuls; ++i) {
    test.matmuls.push_back(random_product(random, machine));
  }
  test.others.resize(random() % 60);
  for (OtherWords& words : test.others) {
    words.from = random() % (400 * matmuls);
    words.count = 1 + random() % (random() % 4 == 0 ? 60 : 6);
    words.bank = static_cast<std::uint32_t>(random() % machine.scratchpad.banks);
  }
  // In the order in which they are known.
  std::sort(test.others.begin(), test.others.end(),
            [](const OtherWords& a, const OtherWords& b) { return a.from < b.from; });
  return test;
}

/// The contract that the RTL of the matmul unit meets (rtl/core/systole_matmul_unit.sv), row by
/// row. Its first read is in the cycle after the start, so that all else is a cycle later, too.
FoldSchedule gates(const ReadsCase& test, const std::vector<FoldCommand>& commands) {
  BankService banks = banks_of(test, 1);
  const std::uint64_t rows = test.machine.array.rows, cols = test.machine.array.cols;
  return fold_times(
      test.machine.array, commands,
      [&](std::uint64_t cycle, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
        BankStep step;
        if (a) step.first = bank_access(*a, rows, test.machine.scratchpad.bank_bytes());
        if (b) step.second = bank_access(*b, cols, test.machine.scratchpad.bank_bytes());
        return banks.serve(cycle, step).end;
      });
}

/// Cycles of the last fold in which no row of A is read.
std::uint64_t tail(const Machine::Array& array, std::uint64_t m) {
  const std::uint64_t rows = array.rows;
  if (array.overlap == ArrayOverlap::kFull) return rows - std::min(rows, m);
  return rows + array.cols - 2;
}

TEST(OperandReads, OfAMatmulAreThoseOfTheGates) {
  std::mt19937_64 random(12);
  std::uint64_t conflicts = 0;
  for (int i = 0; i < 2'000; ++i) {
    const ReadsCase test = random_case(random, 1);
    const cmd::Matmul& matmul = test.matmuls.front();
    const std::uint64_t started = random() % 50;
    const FoldSchedule expected = gates(test, {fold_command(matmul, started)});
    OperandReads reads(test.machine, matmul, started);
    const std::uint64_t end = reads.advance(banks_of(test), kAlways);
    ASSERT_EQ(end + 1, expected.times[0].released + tail(test.machine.array, matmul.m)) << i;
    conflicts += end - started - matmul_cycles(test.machine.array, matmul, false).interval;
  }
  EXPECT_GT(conflicts, 50'000U);
}

/// Products with B stored transposed, and some without.
void transpose_some(std::mt19937_64& random, ReadsCase& test) {
  for (cmd::Matmul& matmul : test.matmuls) {
    matmul.b_transposed = random() % 3 != 0;
    if (!matmul.b_transposed) continue;
    const StoredShape b = b_shape(matmul);
    matmul.b = {static_cast<std::uint32_t>(random() % 4096), b.cols};
  }
}

TEST(OperandReads, OfATransposedOperandAreThoseOfTheGates) {
  std::mt19937_64 random(16);
  for (int i = 0; i < 1'000; ++i) {
    ReadsCase test = random_case(random, 1);
    transpose_some(random, test);
    // Nobody is in the way, nor an operand in that of the other.
    test.others.clear();
    test.machine.scratchpad.ports = 2;
    const cmd::Matmul& matmul = test.matmuls.front();
    const FoldSchedule expected = gates(test, {fold_command(matmul, 5)});
    const std::uint64_t end =
        OperandReads(test.machine, matmul, 5).advance(banks_of(test), kAlways);
    const std::uint64_t last = 5 + matmul_cycles(test.machine.array, matmul, false).interval;
    EXPECT_EQ(end, last) << i;
    EXPECT_EQ(end + 1, expected.times[0].released + tail(test.machine.array, matmul.m)) << i;
  }
}

// In gates the next fold's columns come as soon as the transposer is free, here with its begin: it
// is hidden as far, but meets others at other times.
TEST(OperandReads, OfTransposedOperandsInARowAreNearlyThoseOfTheGates) {
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
    OperandReads reads;
    FoldSchedule expected;
    for (std::size_t c = 0; c < kMatmuls; ++c) {
      const cmd::Matmul& matmul = test.matmuls[c];
      reads = c != 0 ? OperandReads(reads, matmul, 0, banks, free)
                     : OperandReads(test.machine, matmul, 0);
      free = reads.advance(banks, kAlways);
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
  EXPECT_LT(off, 0.01 * cycles);
  EXPECT_GT(without, 0.01 * cycles) << "what transposers take";
}

TEST(OperandReads, GoOnWhenMoreIsKnownOfOthers) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 1'000; ++i) {
    ReadsCase test = random_case(random, 1);
    const cmd::Matmul& matmul = test.matmuls.front();
    OperandReads all(test.machine, matmul, 5);
    const std::uint64_t expected = all.advance(banks_of(test), kAlways);
    OperandReads reads(test.machine, matmul, 5);
    BankService banks(test.machine.scratchpad.banks, test.machine.scratchpad.ports);
    std::size_t known = 0;
    std::uint64_t now = 5, end = 0;
    for (int steps = 0;; ++steps) {
      ASSERT_LT(steps, 2'000);
      for (; known < test.others.size() && test.others[known].from < now; ++known) {
        add_words(banks, test.others[known]);
      }
      end = reads.advance(banks, now);
      if (end <= now) break;
      ASSERT_LE(end, std::max(expected, now + 1)) << "what is to come can only cost more";
      now = random() % 2 == 0 ? end : std::min(end, now + 1 + random() % 30);
    }
    ASSERT_EQ(end, expected) << i;
  }
}

// A lower bound that holds for every array: the cycles of hw/array/array.h, and of those in which
// its operands are in one bank, a cycle for each read.
TEST(OperandReads, TakeTheCyclesOfTheArrayWhereNothingIsInTheirWay) {
  std::mt19937_64 random(14);
  for (int i = 0; i < 2'000; ++i) {
    Machine machine;
    machine.array.rows = 4U << random() % 3;
    machine.array.cols = 4U << random() % 3;
    machine.array.overlap = static_cast<ArrayOverlap>(random() % 3);
    machine.array.dataflow = static_cast<Dataflow>(random() % 2);
    machine.array.split = ArraySplit::kBoth;
    machine.scratchpad.kib = 64;
    machine.scratchpad.banks = 2;
    machine.scratchpad.ports = 2;
    cmd::Matmul matmul;
    matmul.m = static_cast<std::uint32_t>(1 + random() % 60);
    matmul.n = static_cast<std::uint32_t>(1 + random() % 60);
    matmul.k = static_cast<std::uint32_t>(1 + random() % 120);
    matmul.b_transposed = random() % 2 == 0;
    matmul.b_int4 = random() % 2 == 0;
    matmul.a_int4 = matmul.b_int4 && random() % 2 == 0;
    matmul.a = {0, 128};
    matmul.b = {32 * 1024, 128};
    OperandReads reads(machine, matmul, 7);
    BankService banks(2, 2);
    // Something far away, so that no fold is passed over as a whole.
    (void)banks.serve(random() % 40, {BankAccess{0, false}, BankAccess{1, false}}, 1);
    const std::uint64_t cycles = matmul_cycles(machine.array, matmul, false).interval;
    const std::uint64_t end = reads.advance(banks, kAlways);
    ASSERT_GE(end, 7 + cycles) << i;
    ASSERT_LE(end, 7 + cycles + 1) << i << ": the other's words meet a step of two words";
    OperandReads alone(machine, matmul, 7);
    ASSERT_EQ(alone.advance(BankService(2, 2), kAlways), 7 + cycles) << i;
    if (machine.array.dataflow != Dataflow::kWeightStationary ||
        machine.array.overlap == ArrayOverlap::kNone) {
      continue;
    }
    const std::uint64_t ready = random() % (7 + cycles + 1);
    OperandReads next(alone, matmul, ready, BankService(2, 2), 7 + cycles);
    const std::uint64_t rows = machine.array.rows;
    // The weights can come from the begin of the last fold on.
    const std::uint64_t fill = transposer_cycles(machine.array, matmul);
    const std::uint64_t beside =
        std::min(7 + cycles - ready, array_cycles(machine.array, matmul.m, 1, 1, true).interval);
    EXPECT_EQ(next.exposed(), rows + fill - std::min(rows + fill, beside)) << i;
    ASSERT_EQ(next.advance(BankService(2, 2), kAlways),
              7 + 2 * cycles - (rows + fill - next.exposed()))
        << i;
  }
}

TEST(OperandReads, OfBothOperandsInOneBankTakeTurns) {
  Machine machine;
  machine.array.rows = machine.array.cols = 8;
  machine.scratchpad.kib = 16;
  machine.scratchpad.banks = 1;
  cmd::Matmul matmul;
  matmul.m = 20;
  matmul.n = matmul.k = 16;
  matmul.a = {0, 16};
  matmul.b = {4096, 16};
  OperandReads reads(machine, matmul, 0);
  // Four folds: the weights of three come in beside rows of A.
  EXPECT_EQ(reads.advance(BankService(1), kAlways), 8U + 4 * 20 + 3 * 8);
  EXPECT_FALSE(reads.bank());
  OperandReads two_ports(machine, matmul, 0);
  EXPECT_EQ(two_ports.advance(BankService(1, 2), kAlways), 8U + 4 * 20);
}

// Both operands stream, one in each of two banks: whatever others take of either holds the array.
TEST(OperandReads, OfStationaryOutputsMeetOthersInBothBanks) {
  Machine machine;
  machine.array.rows = machine.array.cols = 4;
  machine.array.dataflow = Dataflow::kOutputStationary;
  machine.scratchpad.kib = 16;
  machine.scratchpad.banks = 4;
  cmd::Matmul matmul;
  matmul.m = matmul.n = 4;
  matmul.k = 20;
  matmul.a = {0, 32};
  matmul.b = {4096, 4};
  const std::uint64_t cycles = matmul_cycles(machine.array, matmul, false).interval;
  for (const std::uint32_t bank : {0U, 1U, 2U}) {
    BankService banks(4);
    (void)banks.serve(3, {BankAccess{bank, false}, std::nullopt}, 5);
    OperandReads reads(machine, matmul, 0);
    EXPECT_EQ(reads.advance(banks, kAlways), cycles + (bank < 2 ? 5 : 0)) << bank;
  }
}

// Each command as the model's array takes it (tlm/core/array_unit.cpp), against gates that go on
// with the next one's weights while the last fold streams.
TEST(OperandReads, OfMatmulsInARowAreThoseOfTheGates) {
  std::mt19937_64 random(15);
  std::uint64_t conflicts = 0;
  std::size_t hidden = 0, late = 0, in_between = 0;
  constexpr std::size_t kMatmuls = 5;
  for (int i = 0; i < 1'000; ++i) {
    ReadsCase test = random_case(random, kMatmuls);
    const Machine::Array& array = test.machine.array;
    const BankService banks = banks_of(test);
    std::vector<FoldCommand> commands;
    std::uint64_t free = 0, ready = 0;
    OperandReads reads;
    FoldSchedule expected;
    for (std::size_t c = 0; c < kMatmuls; ++c) {
      const cmd::Matmul& matmul = test.matmuls[c];
      ready += random() % 3 == 0 ? random() % 400 : random() % 20;
      const std::uint64_t started = std::max(ready, free);
      const bool continues = c != 0 && free == started && array.overlap != ArrayOverlap::kNone;
      reads = continues ? OperandReads(reads, matmul, ready, banks, started)
                        : OperandReads(test.machine, matmul, started);
      free = reads.advance(banks, kAlways);
      conflicts +=
          free - started - reads.exposed() - matmul_cycles(array, matmul, continues).interval;
      hidden += continues && reads.exposed() == 0 ? 1U : 0U;
      in_between += continues && reads.exposed() != 0 ? 1U : 0U;
      late += continues ? 0U : 1U;
      commands.push_back(
          fold_command(matmul, c == 0 ? ready : std::max(ready, expected.times[c - 1].free)));
      expected = gates(test, commands);
      ASSERT_EQ(free + 1, expected.times[c].released + tail(array, matmul.m))
          << i << " command " << c;
    }
  }
  EXPECT_GT(conflicts, 100'000U);
  EXPECT_GT(hidden, 1'000U) << "first weights came in beside the matmul before";
  EXPECT_GT(in_between, 10U) << "some of them did";
  EXPECT_GT(late, 1'000U);
}

}  // namespace
}  // namespace systole::hw

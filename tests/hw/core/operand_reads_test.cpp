#include "hw/core/operand_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "hw/core/bank_words.h"
#include "hw/core/fold_command.h"
#include "support/array/reads_case.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kAlways = std::uint64_t{1} << 60;

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
    OperandReads next(alone, matmul, ready, BankService(2, 2));
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

}  // namespace
}  // namespace systole::hw

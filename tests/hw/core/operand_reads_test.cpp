#include "hw/core/operand_reads.h"

#include <gtest/gtest.h>

#include <random>

#include "hw/core/bank_words.h"
#include "support/array/reads_case.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kAlways = std::uint64_t{1} << 60;

// A lower bound that holds for every array: the cycles of hw/array/array.h.
TEST(OperandReads, TakeTheCyclesOfTheArrayWhereNothingIsInTheirWay) {
  std::mt19937_64 random(14);
  for (int i = 0; i < 2'000; ++i) {
    const auto [machine, matmul] = random_apart(random, Dataflow::kOutputStationary, 2);
    OperandReads reads(machine.array, machine.scratchpad, matmul, 7);
    BankService banks(2, 2);
    // Something far away, so that no fold is passed over as a whole.
    (void)banks.serve(random() % 40, {BankAccess{0, false}, BankAccess{1, false}}, 1);
    const std::uint64_t cycles = matmul_cycles(machine.array, matmul, false).interval;
    const std::uint64_t end = reads.advance(banks, kAlways);
    ASSERT_GE(end, 7 + cycles) << i;
    ASSERT_LE(end, 7 + cycles + 1) << i << ": the other's words meet a step of two words";
    OperandReads alone(machine.array, machine.scratchpad, matmul, 7);
    ASSERT_EQ(alone.advance(BankService(2, 2), kAlways), 7 + cycles) << i;
  }
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
    OperandReads reads(machine.array, machine.scratchpad, matmul, 0);
    EXPECT_EQ(reads.advance(banks, kAlways), cycles + (bank < 2 ? 5 : 0)) << bank;
  }
}

}  // namespace
}  // namespace systole::hw

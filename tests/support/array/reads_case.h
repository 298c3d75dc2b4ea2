#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "hw/core/bank_words.h"
#include "hw/core/fold_command.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"

/// Matmuls at random, others that use the banks of their operands, and what gates do then.
namespace systole::hw {

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

inline void add_words(BankService& banks, const OtherWords& words, std::uint64_t shift = 0) {
  const BankStep step{BankAccess{words.bank, false}, std::nullopt};
  (void)banks.serve(words.from + shift, step, words.count);
}

inline BankService banks_of(const ReadsCase& test, std::uint64_t shift = 0) {
  BankService banks(test.machine.scratchpad.banks, test.machine.scratchpad.ports);
  for (const OtherWords& words : test.others) add_words(banks, words, shift);
  return banks;
}

/// Of any size, anywhere.
inline cmd::Matmul random_product(std::mt19937_64& random, const Machine& machine) {
  const Machine::Array& array = machine.array;
  const bool whole = random() % 2 == 0;
  const auto size = [&](std::uint32_t of_tile) {
    return static_cast<std::uint32_t>(whole ? of_tile * (1 + random() % 3)
                                            : 1 + random() % (of_tile * 3));
  };
  cmd::Matmul matmul;
  matmul.m = static_cast<std::uint32_t>(1 + random() % 40);
  matmul.n = size(array.cols);
  matmul.k = size(array.rows);
  matmul.b_transposed = random() % 3 == 0;
  const auto place = [&](LocalTile& tile, const StoredShape& shape) {
    tile.pitch = static_cast<std::uint32_t>(shape.cols + random() % 3 * array.rows);
    const std::uint64_t room =
        std::uint64_t{machine.scratchpad.kib} * 1024 - std::uint64_t{shape.rows} * tile.pitch;
    tile.address = static_cast<std::uint32_t>(random() % room);
  };
  place(matmul.a, a_shape(matmul));
  place(matmul.b, b_shape(matmul));
  matmul.c = {static_cast<std::uint32_t>(random() % 1000),
              static_cast<std::uint32_t>(matmul.n + random() % 20)};
  matmul.accumulate = random() % 2 == 0;
  return matmul;
}

inline ReadsCase random_case(std::mt19937_64& random, std::size_t matmuls) {
  ReadsCase test;
  Machine& machine = test.machine;
  machine.array.rows = 4U << random() % 2;
  machine.array.cols = 4U << random() % 2;
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

/// A product of any size, of int4 or not, whose operands are in banks of their own, of two ports.
struct ApartCase {
  Machine machine;
  cmd::Matmul matmul;
};
inline ApartCase random_apart(std::mt19937_64& random, Dataflow dataflow, std::uint32_t banks) {
  ApartCase test;
  Machine& machine = test.machine;
  machine.array.rows = 4U << random() % 3;
  machine.array.cols = 4U << random() % 3;
  machine.array.overlap = static_cast<ArrayOverlap>(random() % 3);
  machine.array.dataflow = dataflow;
  machine.array.split = ArraySplit::kBoth;
  machine.scratchpad = {64, banks, 2};
  cmd::Matmul& matmul = test.matmul;
  matmul.m = static_cast<std::uint32_t>(1 + random() % 60);
  matmul.n = static_cast<std::uint32_t>(1 + random() % 60);
  matmul.k = static_cast<std::uint32_t>(1 + random() % 120);
  matmul.b_transposed = random() % 2 == 0;
  matmul.b_int4 = random() % 2 == 0;
  matmul.a_int4 = matmul.b_int4 && random() % 2 == 0;
  matmul.a = {0, 128};
  matmul.b = {32 * 1024, 128};
  return test;
}

/// The contract that the RTL of the matmul unit meets (rtl/core/systole_matmul_unit.sv), row by
/// row. Its first read is in the cycle after the start, so that all else is a cycle later, too.
/// `banks`: those of banks_of() a cycle later, which then have served the array, too.
inline FoldSchedule gates(const ReadsCase& test, const std::vector<FoldCommand>& commands,
                          BankService& banks) {
  const std::uint64_t bank = test.machine.scratchpad.bank_bytes();
  // At the end of the memory there is no word after it.
  const auto access = [&](std::uint64_t address) {
    BankAccess of = bank_access(address, scratchpad_word_bytes(test.machine), BlockSize(bank));
    of.crosses = of.crosses && of.bank + 1 != test.machine.scratchpad.banks;
    return of;
  };
  return fold_times(
      test.machine.array, commands,
      [&](std::uint64_t cycle, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
        BankStep step;
        if (a) step.first = access(*a);
        if (b) step.second = access(*b);
        return banks.serve(cycle, step).end;
      });
}

}  // namespace systole::hw

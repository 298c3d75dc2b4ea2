#include "hw/memory/word_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "hw/description/machine_file.h"
#include "hw/energy.h"
#include "hw/silicon/area.h"

namespace systole::hw {
namespace {

/// Words of the port that hold a code word which the write covers in part.
std::uint64_t counted_reads(std::uint64_t begin, std::uint64_t end, std::uint64_t word,
                            std::uint64_t port) {
  std::set<std::uint64_t> reads;
  for (std::uint64_t byte = begin; byte < end; ++byte) {
    const std::uint64_t first = byte / word * word;
    if (first < begin || first + word > end) reads.insert(byte / port);
  }
  return reads.size();
}

TEST(WordCode, ReadsWordsThatAWriteCoversInPart) {
  const WordCode secded{Protection::kSecded, 8, 8};
  for (std::uint64_t begin = 0; begin < 40; ++begin) {
    for (std::uint64_t end = begin + 1; end < 80; ++end) {
      EXPECT_EQ(reads_before_write(secded, begin, end, 16), counted_reads(begin, end, 8, 16))
          << begin << " to " << end;
      EXPECT_EQ(reads_before_write({}, begin, end, 16), 0U);
    }
  }
}

TEST(WordCode, CostsBitsByItsStrengthAndSecdedACycle) {
  Machine machine = find_machine("transformer");
  double area = 0, scratchpad = 0, accumulator = 0;
  for (const Protection protection :
       {Protection::kNone, Protection::kParity, Protection::kSecded}) {
    machine.scratchpad.protection = machine.accumulator.protection = protection;
    const Machine::Energy energy = energy_table(machine);
    EXPECT_GT(area_of(machine).memory, area);
    EXPECT_GE(energy.scratchpad_byte_pj, scratchpad);
    EXPECT_GT(energy.accumulator_byte_pj, accumulator);
    area = area_of(machine).memory;
    scratchpad = energy.scratchpad_byte_pj;
    accumulator = energy.accumulator_byte_pj;
    const std::uint64_t delay = protection == Protection::kSecded ? 1 : 0;
    EXPECT_EQ(scratchpad_code(machine).read_delay(), delay);
    EXPECT_EQ(accumulator_code(machine).read_delay(), delay);
  }
  // (72, 64) and (39, 32).
  EXPECT_DOUBLE_EQ(scratchpad_code(machine).growth(), 72.0 / 64);
  EXPECT_DOUBLE_EQ(accumulator_code(machine).growth(), 39.0 / 32);
}

}  // namespace
}  // namespace systole::hw

#pragma once

#include <cstdint>
#include <optional>

#include "hw/array/array_schedule.h"
#include "hw/kernel/gemm.h"
#include "hw/machine/machine.h"

/// A flipped bit in a register of a processing element, and what it does to the product that is in
/// flight. Weight-stationary; registers of rtl/array/systole_systolic_array.sv.
///
/// Element (r, c) multiplies what enters in cycle t in cycle t + r + c. With S the cycle in which
/// the first row of a fold enters:
///
/// | register                     | bits | holds, of that fold                                |
/// |------------------------------|------|----------------------------------------------------|
/// | weight, in use               | 8    | its weight, from weights_in_use() + r + c on       |
/// | activation, to element c + 1 | 9    | row i's in cycle S + i + r + c + 1                 |
/// | sum, to element r + 1        | 32   | row i's over rows 0 to r in cycle S + i + r + c + 1 |
///
/// A flipped weight is wrong for all rows that come after, until the next fold's takes its place; a
/// flipped activation for one row and the columns right of c; a flipped sum for one sum. An
/// activation has a ninth bit, its sign. Cycles that the array loses to bank conflicts come
/// after the product's.
namespace systole::hw {

enum class ArrayRegister : std::uint8_t { kWeight, kActivation, kSum };

/// Bits of such a register.
[[nodiscard]] constexpr std::uint32_t bits_of(ArrayRegister which) {
  return which == ArrayRegister::kWeight ? 8 : which == ArrayRegister::kActivation ? 9 : 32;
}

struct ArrayFlip {
  ArrayRegister which = ArrayRegister::kWeight;
  std::uint32_t row = 0, col = 0;  ///< of the element
  std::uint32_t bit = 0;
  std::uint64_t fold = 0;      ///< of the product
  std::uint64_t streamed = 0;  ///< its row that is wrong, of a weight the first that is
};

/// `flip` with the fold and the row that a flip at the begin of `cycle` of a product of m rows
/// meets; nothing if the register holds nothing that a later result needs.
[[nodiscard]] std::optional<ArrayFlip> array_flip_at(const ArraySchedule& schedule, std::uint64_t m,
                                                     std::int64_t cycle, ArrayFlip flip);

/// Makes C, the product `args`, that with the flip. Sums wrap around.
void apply_array_flip(const GemmArgs& args, const Machine::Array& array,
                      const ArraySchedule& schedule, const ArrayFlip& flip);

}  // namespace systole::hw

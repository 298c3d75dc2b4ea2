#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"

/// What a core reads of a program besides its commands, and when it has to read it again.
namespace systole::hw {

/// Mixes that a core holds; chains: core.chain_slots.
inline constexpr std::size_t kMixSlots = 8;

/// What a command refers to by index.
struct References {
  static constexpr std::size_t kMostChains = 5, kMostMixes = 2;

  std::array<std::uint32_t, kMostChains> chains{};
  std::array<std::uint32_t, kMostMixes> mixes{};
  std::size_t chain_count = 0, mix_count = 0;
  std::optional<std::uint32_t> mask;
};
[[nodiscard]] References references_of(const Command& command);

/// Entries of the operand table that a command takes, from OperandEntries::first on: those of its
/// tensor operands after the first. Its chain must exist.
struct OperandEntries {
  std::uint32_t first = 0, count = 0;
};
[[nodiscard]] OperandEntries operand_entries(const Command& command, const Program& program);

/// Bytes that a core reads for each command of a program, which must pass check_program(): those of
/// the command, and of what it refers to unless the core holds it. The header comes with the first
/// command; what a first chunk reads beyond the program, with the last.
[[nodiscard]] std::vector<std::uint64_t> fetched_bytes(const Program& program,
                                                       const Machine& machine);

}  // namespace systole::hw

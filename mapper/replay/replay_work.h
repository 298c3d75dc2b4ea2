#pragma once

#include <array>
#include <cstdint>

#include "hw/array/array.h"
#include "hw/postop/result_cycles.h"
#include "hw/postop/result_flow.h"
#include "hw/program/program.h"
#include "mapper/replay/replay_memory.h"

namespace systole::mapper {

/// The addresses that a command reads and writes, of all memories in one space.
struct ReplayRanges {
  /// Addresses of a memory take far fewer bits than these.
  static constexpr unsigned kSpaceShift = 60;
  struct Span {
    std::uint64_t begin, end;
    /// Its memory's bit.
    [[nodiscard]] unsigned space() const noexcept { return 1U << (begin >> kSpaceShift); }
  };
  static constexpr unsigned kReads = 3 + hw::kMaxTensorOperands;
  static constexpr unsigned kWrites = 3;
  std::array<Span, kReads> read;
  std::array<Span, kWrites> write;
  unsigned reads = 0, writes = 0;
  unsigned read_spaces = 0, written_spaces = 0;  ///< memories, a bit each

  void clear() noexcept { reads = writes = read_spaces = written_spaces = 0; }
  void add(const hw::Range& range) {
    constexpr std::uint64_t kHighest = (std::uint64_t{1} << kSpaceShift) - 1;
    const std::uint64_t base = static_cast<std::uint64_t>(range.space) << kSpaceShift;
    const Span span{base | std::min(range.begin, kHighest), base | std::min(range.end, kHighest)};
    const unsigned space = 1U << static_cast<unsigned>(range.space);
    if (range.write) {
      written_spaces |= space;
      if (writes < kWrites) write[writes++] = span;
    } else {
      read_spaces |= space;
      if (reads < kReads) read[reads++] = span;
    }
  }
};

/// A command as a replay keeps it, from dispatch to completion: apart from its program, and from
/// its ranges, which are read far more often than the rest.
struct ReplayWork {
  hw::Opcode opcode = hw::Opcode::kEnd;
  std::uint32_t op = 0;
  std::uint64_t dispatched = 0;
  std::uint64_t number = 0;  ///< of all commands
  /// By unit: commands of it, counted from its first, that must have completed, and that must have
  /// read their operands.
  std::array<std::uint64_t, 3> after_completion{}, after_release{};
  /// By unit: which of the 64 before the youngest one must have completed, too; bit 0 is the next
  /// older one.
  std::array<std::uint64_t, 3> also_after{};
  /// By unit: which of these write what it reads of scratchpad and DRAM, of a command of the store
  /// unit; bit 0 is the youngest one.
  std::array<std::uint64_t, 3> read_after{};

  // Loads, stores, moves.
  ReplayRows rows;  ///< in DRAM
  /// Bytes of a local memory.
  struct LocalBytes {
    std::uint64_t begin = 0, end = 0;
  };
  LocalBytes local;  ///< of the memory it writes
  bool to_accumulator = false;
  std::uint64_t row_words = 0, local_pitch = 0, local_bytes = 0;
  bool as_it_arrives = false;      ///< rows are written request by request, not as a whole
  bool is_placed = false;          ///< its sums wait for the array, beat by beat
  std::uint64_t row_readings = 0;  ///< of the words of such a row: what its code reads first
  bool has_chain = false, transposed = false;
  bool expands = false;  ///< packed weights: the chain is the expander
  /// A load whose rows pass stages, which has the load unit to itself.
  [[nodiscard]] bool is_staged() const {
    return has_chain && !expands && hw::unit_of(opcode) == hw::Unit::kLoad;
  }
  std::uint64_t m = 0;        ///< rows
  std::uint64_t columns = 0;  ///< of what goes through a chain
  std::uint64_t element = 0;  ///< bytes: of a load's, of a result of a transposition
  std::uint64_t fill = 0, per_row = 0;
  unsigned operands = 0;
  std::uint64_t operand_block = 0;  ///< rows of them that are asked for at a time
  std::array<ReplayRows, hw::kMaxTensorOperands> operand;
  LocalBytes parameters;  ///< what its chain reads of the scratchpad
  hw::ParameterWords parameter_words;
  hw::StoreSetUp::Command set_up;
  hw::ResultCycles result;  ///< of its chain, with what comes before and after it
  std::uint64_t bits = 8;   ///< of a result
  // Matmuls.
  hw::cmd::Matmul product;
  std::uint64_t read_delay = 0;  ///< of their words
  // Attention, calls of the host.
  std::uint64_t duration = 0;
};

/// Cycles that a command holds the array or the post-op unit at least; 0 for those of other units.
[[nodiscard]] std::uint64_t least_cycles(const hw::Command& command, const hw::Program& program,
                                         const hw::Machine& machine);

/// Makes what a replay keeps of a command. `attention`: cycles of an attention.
void decode_work(const hw::Command& command, const hw::Program& program, const hw::Machine& machine,
                 std::uint64_t attention, ReplayWork& work);
/// How the results of a store or a move leave its chain, for a replay by request. `work`: what
/// decode_work() has made of it.
[[nodiscard]] hw::ResultFlow decode_flow(const hw::Command& command, const hw::Program& program,
                                         const hw::Machine& machine, const ReplayWork& work);

}  // namespace systole::mapper

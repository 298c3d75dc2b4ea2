#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A matrix product as a nest of loops over a hierarchy of memories, and how often each memory is
/// accessed in it.
namespace systole::analysis {

/// C[m x n] += A[m x k] B[k x n].
enum class Dim : std::uint8_t { kM, kN, kK };
inline constexpr std::size_t kDims = 3;
enum class Operand : std::uint8_t { kA, kB, kC };
inline constexpr std::size_t kOperands = 3;

/// Whether an operand is indexed by a dimension.
[[nodiscard]] constexpr bool has(Operand operand, Dim dim) {
  switch (operand) {
    case Operand::kA:
      return dim != Dim::kN;
    case Operand::kB:
      return dim != Dim::kM;
    default:
      return dim != Dim::kK;
  }
}

/// What is in which memory while the loops inside run.
enum class Level : std::uint8_t {
  kDram,     ///< loops over tiles that are loaded from DRAM
  kBuffer,   ///< loops that read scratchpad and accumulator
  kSpatial,  ///< PEs side by side: all iterations in one cycle
  kRegister  ///< loops within a PE
};

/// Cuts what is left of a dimension into pieces of `step`; the last one may be smaller.
struct Loop {
  Dim dim = Dim::kM;
  std::uint64_t step = 1;
  Level level = Level::kBuffer;
};

/// Loops from the outermost to the innermost, in the order of Level; what is inside of all of them
/// is one MAC. So each dimension ends in a loop of step 1.
struct LoopNest {
  std::array<std::uint64_t, kDims> size{};  ///< by Dim
  std::vector<Loop> loops;
  /// By Operand: a PE keeps its element while it is the same. Otherwise the buffer is read (or, C:
  /// read and written) again in every cycle.
  std::array<bool, kOperands> held{};
  /// By Operand: all its tiles stay on chip. Each of them comes from DRAM once.
  std::array<bool, kOperands> stays{};
};

/// Elements of one operand.
struct OperandAccesses {
  std::uint64_t dram_tiles = 0;      ///< of tiles that come on chip from DRAM, or leave to it
  std::uint64_t buffer = 0;          ///< that go from the buffer to the PEs, each sent to many once
  std::uint64_t register_fills = 0;  ///< that PEs take in, every copy counted
};

/// Exact counts, in time that does not depend on the sizes.
///
/// A tile is fetched again whenever another one had its place: for every iteration of a loop that
/// the operand has, and of one that it has not if loops inside brought other tiles. For C a count
/// is of visits: each writes back, and all but the first of an element read it before.
/// Throws std::invalid_argument for a nest that breaks the rules above.
[[nodiscard]] std::array<OperandAccesses, kOperands> count_accesses(const LoopNest& nest);

/// The nest as pseudo code, a line for each loop.
[[nodiscard]] std::string to_text(const LoopNest& nest);

}  // namespace systole::analysis

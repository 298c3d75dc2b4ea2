#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/loop_nest.h"
#include "hw/machine/machine.h"

namespace systole::analysis {

/// What a PE keeps while others come and go. On R x C PEs, k is shared out over rows unless said
/// otherwise:
/// - weight-stationary: an element of B; n over columns. Sums go from row to row and leave.
/// - output-stationary: an element of C; m over rows, n over columns.
/// - row-stationary: as many of a row of A as kRowSegment, for all n; B comes by, each segment of
///   its columns to a row of PEs at once, and sums leave after a segment; m over columns. A product
///   of matrices is a convolution with kernels of one row, so of the three reuses of Eyeriss
///   (Chen et al., ISCA 2016) that of neighbouring input rows is not there.
/// - no local reuse: nothing. All operands come from the buffers in every cycle; sums of a column
///   are added at once; n over columns.
enum class Stationary : std::uint8_t { kWeight, kOutput, kRow, kNothing };
inline constexpr std::array<Stationary, 4> kStationaries = {
    Stationary::kWeight, Stationary::kOutput, Stationary::kRow, Stationary::kNothing};

/// "ws", "os", "rs", "nlr".
[[nodiscard]] std::string_view short_name(Stationary stationary);
/// "weight-stationary" and so on.
[[nodiscard]] std::string_view long_name(Stationary stationary);

/// Elements of a row that a row-stationary PE keeps; chosen.
inline constexpr std::uint64_t kRowSegment = 16;

struct ProductShape {
  std::uint32_t m = 0, n = 0, k = 0;
};

/// Loops over tiles from DRAM, and by Operand whether its tiles come in once.
struct DramTiles {
  std::vector<Loop> loops;
  std::array<bool, kOperands> stays{};
};
/// The mapper's tiles in its order, whatever the dataflow. Throws InputError if none fits the
/// machine.
[[nodiscard]] DramTiles mapper_tiles(const ProductShape& shape, const hw::Machine& machine);

/// The nest on an array: `tiles`, and the loops of the dataflow inside of them. Without tiles the
/// product is on chip as a whole.
[[nodiscard]] LoopNest make_nest(Stationary stationary, const ProductShape& shape,
                                 const hw::Machine::Array& array, DramTiles tiles);

/// Accesses by level. Operands and results of a byte, sums of four.
struct DataflowCost {
  LoopNest nest;
  std::array<OperandAccesses, kOperands> operands;  ///< by Operand
  std::uint64_t macs = 0;
  /// Of the elements that PEs keep: taking them in, and one read for each MAC; of C a read and a
  /// write.
  std::uint64_t register_accesses = 0;
  std::uint64_t scratchpad_reads = 0, scratchpad_writes = 0;    ///< bytes
  std::uint64_t accumulator_reads = 0, accumulator_writes = 0;  ///< sums
  std::uint64_t dram_reads = 0, dram_writes = 0;                ///< bytes

  /// Joules. The survey's Fig. 15 has no energy for a register: it is part of the MAC's.
  double mac_energy = 0, scratchpad_energy = 0, accumulator_energy = 0, dram_energy = 0;
  [[nodiscard]] double energy() const {
    return mac_energy + scratchpad_energy + accumulator_energy + dram_energy;
  }
};
[[nodiscard]] DataflowCost cost_of(Stationary stationary, LoopNest nest,
                                   const hw::Machine::Energy& energy);

}  // namespace systole::analysis

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hw/array/array_flip.h"
#include "hw/array/array_schedule.h"
#include "hw/program/program.h"

namespace systole::tlm_model {

/// When stored bytes are read or replaced, in hardware. Blocks compute in steps, on whole tiles and
/// ahead of time where nothing can come in between; the cycles are those in which the hardware
/// would use the byte.
struct StoredUse {
  hw::Space space = hw::Space::kDram;
  bool write = false;            ///< replaces the bytes; else reads them
  bool modifies = false;         ///< replaces them by what depends on what it read
  std::uint64_t first_step = 0;  ///< of those in which the block does it, the first
  std::uint64_t last_step = 0;   ///< ... and the last
  std::uint64_t address = 0;     ///< byte of the memory
  std::uint64_t pitch = 0, rows = 1, bytes = 0;
  /// Cycle of the core's clock in which byte b of row r is used for the first time: the sum of
  /// cycle, r * per_row and b * per_byte, or cycles[r].
  std::int64_t cycle = 0, per_row = 0, per_byte = 0;
  std::vector<std::uint64_t> cycles;
  /// A matmul uses a byte for every tile of a dimension, so many cycles after each other; sums are
  /// read and replaced by all uses but perhaps the first.
  hw::ArrayTiles tiles = hw::ArrayTiles::kNone;
  std::uint64_t repeats = 1, repeat_cycles = 0;

  [[nodiscard]] std::int64_t cycle_of(std::uint64_t row, std::uint64_t byte) const {
    if (!cycles.empty()) return static_cast<std::int64_t>(cycles[row]);
    return cycle + static_cast<std::int64_t>(row) * per_row +
           static_cast<std::int64_t>(byte) * per_byte;
  }
};

/// A matmul in two parts: before and from tile `tile` of a dimension.
struct MatmulSplit {
  hw::ArrayTiles tiles = hw::ArrayTiles::kNone;
  std::uint64_t tile = 0;
};

/// A product that the array computes.
struct ArrayProduct {
  std::uint64_t step = 0;
  std::int64_t begun = 0;  ///< cycle 0 of its schedule, of the core's clock
  std::uint64_t m = 0;     ///< rows
  hw::ArraySchedule schedule;
};

/// Learns of each use of stored bytes, and may change them between two of them. Values only: time
/// is not affected.
class UseObserver {
 public:
  UseObserver() = default;
  UseObserver(const UseObserver&) = delete;
  UseObserver& operator=(const UseObserver&) = delete;
  virtual ~UseObserver() = default;

  /// A block is about to use stored bytes. The result is the number of this step, from 0.
  virtual std::uint64_t step() = 0;
  /// Number of the last step.
  [[nodiscard]] virtual std::uint64_t last_step() const = 0;
  virtual void use(StoredUse use) = 0;
  /// Whether the matmul of the last step shall be computed in two parts.
  [[nodiscard]] virtual std::optional<MatmulSplit> split() { return std::nullopt; }
  /// Between these parts.
  virtual void between_parts() {}
  /// The product of the last step.
  virtual void product(const ArrayProduct& /*product*/) {}
  /// The register that flips while it is in flight.
  [[nodiscard]] virtual std::optional<hw::ArrayFlip> array_flip() { return std::nullopt; }
};

}  // namespace systole::tlm_model

#pragma once

#include <cstdint>
#include <vector>

#include "base/round.h"
#include "hw/program/program.h"
#include "mapper/place/placement.h"

namespace systole::mapper {

/// Lays out what never changes in DRAM: weights and parameters tile by tile, in the order in which
/// they are loaded, each tile one contiguous run exactly as the scratchpad holds it.
class ConstantImage {
 public:
  /// `with_contents` off: the addresses are the same, but there are no pieces.
  explicit ConstantImage(std::uint64_t begin, bool with_contents = true)
      : end_(begin), with_contents_(with_contents) {}

  /// A tile of a row-major matrix of bytes, rows padded to `pitch`; `data` may be null (shape only:
  /// the addresses are the same). Returns its address, a multiple of `alignment`.
  std::uint64_t add_tile(const std::uint8_t* data, std::size_t row_bytes, std::uint32_t rows,
                         std::uint32_t cols, std::uint32_t pitch,
                         std::uint64_t alignment = kDramRowAlignment);
  /// The same at a place that is already allocated.
  void add_rows(std::uint64_t address, const std::vector<std::uint8_t>& data, std::size_t row_bytes,
                std::uint32_t pitch);

  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  /// Where the program is, after all of it.
  [[nodiscard]] std::uint64_t program_address() const noexcept { return round_up(end_, 4096); }
  [[nodiscard]] bool with_contents() const noexcept { return with_contents_; }
  [[nodiscard]] hw::MemoryImage& pieces() noexcept { return pieces_; }

 private:
  std::uint64_t end_;
  bool with_contents_;
  hw::MemoryImage pieces_;
};

}  // namespace systole::mapper

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/round.h"
#include "base/shared_vector.h"
#include "hw/program/program.h"
#include "mapper/place/placement.h"

namespace systole::mapper {

/// Lays out what never changes in DRAM: weights and parameters tile by tile, in the order in which
/// they are loaded, each tile one contiguous run exactly as the scratchpad holds it. Tiles of
/// weights are made when memory takes them: no copy of them waits for that.
class ConstantImage {
 public:
  using Bytes = std::vector<std::uint8_t>;
  /// A tile of a tensor from its data.
  using Tile = std::function<Bytes(const std::uint8_t* data)>;

  /// `with_contents` off: the addresses are the same, but there are no pieces.
  explicit ConstantImage(std::uint64_t begin, bool with_contents = true);

  /// A tile of a row-major matrix of bytes, rows padded to `pitch`; `data` may be null (shape only:
  /// the addresses are the same). Returns its address, a multiple of `alignment`.
  std::uint64_t add_tile(const std::uint8_t* data, std::size_t row_bytes, std::uint32_t rows,
                         std::uint32_t cols, std::uint32_t pitch,
                         std::uint64_t alignment = kDramRowAlignment);
  /// A tile of so many bytes that `tile` makes of a tensor's data, which may be empty.
  std::uint64_t add_tile(const hw::SharedVector<std::uint8_t>& data, std::size_t bytes, Tile tile);
  /// Rows of a tensor, padded, at a place that is already allocated.
  void add_rows(std::uint64_t address, const hw::SharedVector<std::uint8_t>& data,
                std::size_t row_bytes, std::uint32_t pitch);

  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  /// Where the program is, after all of it.
  [[nodiscard]] std::uint64_t program_address() const noexcept { return round_up(end_, 4096); }
  /// The pieces, those of a tensor one after the other.
  [[nodiscard]] hw::MemoryImage take() &&;

 private:
  /// The data of the tensor whose tiles are made; there is one of them at a time.
  class Source;
  struct Piece {
    std::size_t tensor;  ///< in the order of their first tiles
    hw::MemoryPiece piece;
  };
  void add(std::uint64_t address, const hw::SharedVector<std::uint8_t>& data, std::size_t bytes,
           Tile tile);

  std::uint64_t end_;
  bool with_contents_;
  std::shared_ptr<Source> source_;
  std::size_t tensors_ = 0;
  std::map<const void*, std::size_t> known_;  ///< number of a tensor by its data
  std::vector<Piece> pieces_;
};

}  // namespace systole::mapper

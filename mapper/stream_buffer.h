#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "model/graph.h"

namespace systole::mapper {

/// What a piece of the streaming scratchpad holds: a tile of a tensor, or parameters.
struct TileKey {
  enum class Kind : std::uint8_t { kA, kStagedA, kB, kParameters };
  Kind kind = Kind::kA;
  std::uint32_t owner = 0;  ///< tensor, or operator of staged tiles and parameters
  std::uint32_t row = 0, col = 0, rows = 0, cols = 0;
  std::uint32_t pitch = 0;  ///< of its rows on chip: a matrix may be used both ways round

  friend bool operator==(const TileKey& x, const TileKey& y) {
    return std::tie(x.kind, x.owner, x.row, x.col, x.rows, x.cols, x.pitch) ==
           std::tie(y.kind, y.owner, y.row, y.col, y.rows, y.cols, y.pitch);
  }
};

struct Span {
  std::uint64_t begin = 0, end = 0;
};

/// The streaming part of the scratchpad as a ring: each new tile takes the next free place, which
/// is what lets loads run ahead of the matmuls, and what a tile still holds can be used again.
class StreamBuffer {
 public:
  StreamBuffer(std::uint64_t begin, std::uint64_t end, std::uint32_t alignment,
               std::uint64_t bank_bytes)
      : begin_(begin), end_(end), alignment_(alignment), bank_bytes_(bank_bytes), next_(begin) {}

  [[nodiscard]] std::optional<Span> find(const TileKey& key) const;
  /// Takes the next place that touches none of `pinned` and `held`; whatever was there is
  /// forgotten. Nothing if there is no such place. If possible it keeps out of `busy` too, because
  /// a load would have to wait until those tiles have been read, and out of the banks of `pinned`,
  /// because the tiles of one matmul are read in the same cycles.
  std::optional<Span> allocate(const TileKey& key, std::uint64_t bytes,
                               const std::vector<Span>& pinned, const std::vector<Span>& busy,
                               const std::vector<Span>& held = {});
  /// Forgets tiles of the tensor that share an element with the view, which is written.
  void forget(const model::View& written);
  void clear() {
    tiles_.clear();
    next_ = begin_;
  }

 private:
  [[nodiscard]] std::optional<Span> place(std::uint64_t bytes,
                                          const std::vector<Span>& pinned) const;

  struct Held {
    TileKey key;
    Span span;
  };
  std::uint64_t begin_, end_;
  std::uint32_t alignment_;
  std::uint64_t bank_bytes_;
  std::uint64_t next_;
  std::vector<Held> tiles_;
};

}  // namespace systole::mapper

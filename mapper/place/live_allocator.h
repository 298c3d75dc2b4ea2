#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace systole::mapper {

/// First fit from either end for blocks that live from one step to another: blocks whose lives do
/// not meet may share addresses. Between blocks at the begin and those at the end there is room.
class LiveAllocator {
 public:
  /// Offers the addresses [begin, begin + capacity), `reserve` of which stay free at every step.
  LiveAllocator(std::uint64_t begin, std::uint64_t capacity, std::uint64_t alignment,
                std::uint64_t reserve = 0)
      : begin_(begin),
        capacity_(capacity),
        alignment_(alignment),
        reserve_(reserve),
        high_water_(begin) {}

  /// Lowest aligned address that is free during the steps [first, last], or nothing.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::size_t first, std::size_t last) {
    return allocate(bytes, first, last, alignment_);
  }
  /// The same with its own alignment.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::size_t first, std::size_t last,
                                        std::uint64_t alignment);
  /// Highest aligned address that is free during the steps [first, last], or nothing.
  std::optional<std::uint64_t> allocate_high(std::uint64_t bytes, std::size_t first,
                                             std::size_t last);

  /// Offers so many bytes instead, no fewer than before.
  void grow(std::uint64_t capacity) { capacity_ = std::max(capacity_, capacity); }

  /// End of the highest block from the begin on that is alive at a step; the begin without any.
  [[nodiscard]] std::uint64_t end_at(std::size_t step) const;
  /// End of the highest block, at whichever end, that is alive at a step; the begin without any.
  [[nodiscard]] std::uint64_t top_at(std::size_t step) const;
  /// Begin of the lowest block at the end that is alive at a step; the end without any.
  [[nodiscard]] std::uint64_t begin_at(std::size_t step) const;
  /// End of the highest block so far.
  [[nodiscard]] std::uint64_t high_water() const noexcept { return high_water_; }

 private:
  struct Block {
    std::uint64_t begin, end;
    std::size_t first, last;
    bool high;
  };
  std::uint64_t take(const Block& block);

  std::uint64_t begin_, capacity_, alignment_, reserve_, high_water_;
  std::vector<Block> blocks_;  ///< by address
};

}  // namespace systole::mapper

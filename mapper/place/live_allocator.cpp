#include "mapper/place/live_allocator.h"

#include <algorithm>

#include "base/round.h"

namespace systole::mapper {

std::optional<std::uint64_t> LiveAllocator::allocate(std::uint64_t bytes, std::size_t first,
                                                     std::size_t last, std::uint64_t alignment) {
  std::uint64_t at = round_up(begin_, alignment);
  for (const Block& block : blocks_) {
    if (block.last < first || last < block.first) continue;
    if (at + bytes <= block.begin) break;
    at = std::max(at, round_up(block.end, alignment));
  }
  std::uint64_t end = begin_ + capacity_;
  for (const Block& block : blocks_) {
    if (block.high && block.first <= last && first <= block.last) end = std::min(end, block.begin);
  }
  if (at + bytes + reserve_ > end) return std::nullopt;
  return take({at, at + bytes, first, last, false});
}

std::optional<std::uint64_t> LiveAllocator::allocate_high(std::uint64_t bytes, std::size_t first,
                                                          std::size_t last) {
  std::uint64_t begin = begin_, end = begin_ + capacity_;
  for (const Block& block : blocks_) {
    if (!block.high && block.first <= last && first <= block.last)
      begin = std::max(begin, block.end);
  }
  begin = round_up(begin + reserve_, alignment_);
  for (;;) {
    if (end < begin + bytes) return std::nullopt;
    const std::uint64_t at = (end - bytes) / alignment_ * alignment_;
    const auto meets = [&](const Block& block) {
      return block.first <= last && first <= block.last && block.begin < at + bytes &&
             at < block.end;
    };
    const auto met = std::find_if(blocks_.begin(), blocks_.end(), meets);
    if (met == blocks_.end()) return take({at, at + bytes, first, last, true});
    end = met->begin;
  }
}

std::uint64_t LiveAllocator::take(const Block& block) {
  blocks_.insert(std::upper_bound(blocks_.begin(), blocks_.end(), block,
                                  [](const Block& a, const Block& b) { return a.begin < b.begin; }),
                 block);
  high_water_ = std::max(high_water_, block.end);
  return block.begin;
}

std::uint64_t LiveAllocator::end_at(std::size_t step) const {
  std::uint64_t end = begin_;
  for (const Block& block : blocks_) {
    if (!block.high && block.first <= step && step <= block.last) end = std::max(end, block.end);
  }
  return end;
}

std::uint64_t LiveAllocator::top_at(std::size_t step) const {
  std::uint64_t end = begin_;
  for (const Block& block : blocks_) {
    if (block.first <= step && step <= block.last) end = std::max(end, block.end);
  }
  return end;
}

std::uint64_t LiveAllocator::begin_at(std::size_t step) const {
  std::uint64_t begin = begin_ + capacity_;
  for (const Block& block : blocks_) {
    if (block.high && block.first <= step && step <= block.last)
      begin = std::min(begin, block.begin);
  }
  return begin;
}

}  // namespace systole::mapper

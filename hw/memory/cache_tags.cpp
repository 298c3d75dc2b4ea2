#include "hw/memory/cache_tags.h"

#include <algorithm>
#include <stdexcept>

namespace systole::hw {

CacheTags::CacheTags(std::size_t sets, std::size_t ways, Replacement replacement)
    : sets_(sets), ways_(ways), replacement_(replacement), entries_(sets * ways) {
  if (sets == 0 || ways == 0) throw std::invalid_argument("a cache needs a set and a way");
}

std::optional<CacheTags::Slot> CacheTags::find(std::uint64_t line) const {
  const Slot first = first_of(line);
  for (Slot slot = first; slot < first + ways_; ++slot) {
    if (entries_[slot].last_use != 0 && entries_[slot].line == line) return slot;
  }
  return std::nullopt;
}

CacheTags::Slot CacheTags::victim(std::uint64_t line) {
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first_of(line));
  const auto oldest =
      std::min_element(begin, begin + static_cast<std::ptrdiff_t>(ways_),
                       [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  if (replacement_ == Replacement::kLru || oldest->last_use == 0) {
    return static_cast<Slot>(oldest - entries_.begin());
  }
  // x^16 + x^14 + x^13 + x^11 + 1, of the greatest period.
  const bool out = (random_ & 1U) != 0;
  random_ = static_cast<std::uint16_t>(random_ >> 1 ^ (out ? 0xb400U : 0U));
  return first_of(line) + random_ % ways_;
}

CacheTags::Access CacheTags::access(std::uint64_t line, bool write) {
  Access result{0, true, std::nullopt};
  if (const auto slot = find(line)) {
    result.slot = *slot;
  } else {
    Entry& old = entries_[victim(line)];
    result = {static_cast<Slot>(&old - entries_.data()), false, std::nullopt};
    if (old.dirty) result.dirty_victim = old.line;
    old = {line, 0, false};
  }
  Entry& entry = entries_[result.slot];
  entry.last_use = ++uses_;
  entry.dirty |= write;
  return result;
}

std::size_t CacheTags::dirty_lines() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return e.dirty; }));
}

}  // namespace systole::hw

#include "hw/cache_tags.h"

#include <algorithm>
#include <stdexcept>

namespace systole::hw {

CacheTags::CacheTags(std::size_t sets, std::size_t ways)
    : sets_(sets), ways_(ways), entries_(sets * ways) {
  if (sets == 0 || ways == 0) throw std::invalid_argument("a cache needs a set and a way");
}

std::optional<CacheTags::Slot> CacheTags::find(std::uint64_t line) const {
  const Slot first = first_of(line);
  for (Slot slot = first; slot < first + ways_; ++slot) {
    if (entries_[slot].last_use != 0 && entries_[slot].line == line) return slot;
  }
  return std::nullopt;
}

CacheTags::Access CacheTags::access(std::uint64_t line, bool write) {
  Access result{0, true, std::nullopt};
  if (const auto slot = find(line)) {
    result.slot = *slot;
  } else {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first_of(line));
    const auto victim =
        std::min_element(begin, begin + static_cast<std::ptrdiff_t>(ways_),
                         [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
    result = {static_cast<Slot>(victim - entries_.begin()), false, std::nullopt};
    if (victim->dirty) result.dirty_victim = victim->line;
    *victim = {line, 0, false};
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

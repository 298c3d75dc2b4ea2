#pragma once

#include <cstdint>
#include <vector>

namespace systole::tlm_model {

/// Which target answers which addresses. Ranges are [base, base + size).
class AddressMap {
 public:
  struct Range {
    std::uint64_t base;
    std::uint64_t size;
    unsigned target;
  };

  /// Throws hw::InputError if the range is empty, wraps around, or overlaps another.
  void add(const Range& range);

  /// The range that holds all of [address, address + bytes), or null. No bytes count as one.
  [[nodiscard]] const Range* find(std::uint64_t address, std::uint64_t bytes) const noexcept {
    if (last_ < ranges_.size() && holds(ranges_[last_], address, bytes)) return &ranges_[last_];
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      if (!holds(ranges_[i], address, bytes)) continue;
      last_ = i;
      return &ranges_[i];
    }
    return nullptr;
  }

  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }

 private:
  static bool holds(const Range& range, std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t offset = address - range.base;
    return address >= range.base && offset < range.size && bytes <= range.size - offset;
  }

  std::vector<Range> ranges_;
  mutable std::size_t last_ = 0;  ///< accesses tend to stay in a range
};

}  // namespace systole::tlm_model

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tlm>
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

/// Points a payload at an address of the target for the duration of a call.
class LocalAddress {
 public:
  LocalAddress(tlm::tlm_generic_payload& payload, const AddressMap::Range& range)
      : payload_(payload), global_(payload.get_address()) {
    payload.set_address(global_ - range.base);
  }
  LocalAddress(const LocalAddress&) = delete;
  LocalAddress& operator=(const LocalAddress&) = delete;
  ~LocalAddress() { payload_.set_address(global_); }

 private:
  tlm::tlm_generic_payload& payload_;
  std::uint64_t global_;
};

/// Makes the bounds of what a target grants those of the bus.
inline void show_in(const AddressMap::Range& range, tlm::tlm_dmi& dmi) {
  // A target may offer more than the range shows of it, and ends are inclusive.
  dmi.set_start_address(range.base + dmi.get_start_address());
  dmi.set_end_address(range.base + std::min<std::uint64_t>(dmi.get_end_address(), range.size - 1));
}

}  // namespace systole::tlm_model

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <systemc>
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

  [[nodiscard]] static bool holds(const Range& range, std::uint64_t address,
                                  std::uint64_t bytes) noexcept {
    const std::uint64_t offset = address - range.base;
    return address >= range.base && offset < range.size && bytes <= range.size - offset;
  }

  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }

 private:
  std::vector<Range> ranges_;
  mutable std::size_t last_ = 0;  ///< accesses tend to stay in a range
};

/// Points a payload at another address for the duration of a call.
class MovedAddress {
 public:
  MovedAddress(tlm::tlm_generic_payload& payload, std::uint64_t address)
      : payload_(payload), before_(payload.get_address()) {
    payload.set_address(address);
  }
  MovedAddress(const MovedAddress&) = delete;
  MovedAddress& operator=(const MovedAddress&) = delete;
  ~MovedAddress() { payload_.set_address(before_); }

 private:
  tlm::tlm_generic_payload& payload_;
  const std::uint64_t before_;
};
/// At an address of the target.
class LocalAddress : MovedAddress {
 public:
  LocalAddress(tlm::tlm_generic_payload& payload, const AddressMap::Range& range)
      : MovedAddress(payload, payload.get_address() - range.base) {}
};

/// transport_dbg() of a bus with this map: passes it on to the target at the payload's address.
template <typename Targets>
unsigned debug_at_target(const AddressMap& map, Targets& targets,
                         tlm::tlm_generic_payload& payload) {
  const AddressMap::Range* const range = map.find(payload.get_address(), payload.get_data_length());
  if (range == nullptr) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return 0;
  }
  const LocalAddress local(payload, *range);
  return targets[static_cast<int>(range->target)]->transport_dbg(payload);
}

/// get_direct_mem_ptr() of a bus with this map, which takes `time` for a request and its answer.
/// The bounds of what the target grants are those of the bus.
template <typename Targets>
bool direct_access_to_target(const AddressMap& map, Targets& targets,
                             tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi,
                             const sc_core::sc_time& time) {
  const AddressMap::Range* const range = map.find(payload.get_address(), 1);
  if (range == nullptr) {
    dmi.set_start_address(payload.get_address());
    dmi.set_end_address(payload.get_address());
    return false;
  }
  const LocalAddress local(payload, *range);
  const bool granted = targets[static_cast<int>(range->target)]->get_direct_mem_ptr(payload, dmi);
  // A target may offer more than the range shows of it, and ends are inclusive.
  dmi.set_start_address(range->base + dmi.get_start_address());
  dmi.set_end_address(range->base +
                      std::min<std::uint64_t>(dmi.get_end_address(), range->size - 1));
  dmi.set_read_latency(dmi.get_read_latency() + time);
  dmi.set_write_latency(dmi.get_write_latency() + time);
  return granted;
}

}  // namespace systole::tlm_model

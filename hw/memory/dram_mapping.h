#pragma once

#include <cstdint>

#include "hw/machine/machine.h"

namespace systole::hw {

/// Where a byte address lives.
struct DramLocation {
  std::uint32_t channel;
  std::uint32_t group;  ///< bank group
  std::uint32_t bank;   ///< of the channel: group * banks per group + bank of the group
  std::uint64_t row;
};

/// Address mapping, from the highest address bits to the lowest:
///
///     row | bank of the group | column | bank group | channel | byte of the burst
///
/// A sequential stream visits all channels and, within each, all bank groups with consecutive
/// bursts: so it runs at one burst per data bus slot (tCCD_S), not at tCCD_L, and opens one row in
/// every bank group at a time.
class DramMapping {
 public:
  /// Throws std::invalid_argument that lists every size which is not a power of two, or which does
  /// not divide the one that contains it.
  explicit DramMapping(const Machine::Dram& dram);

  [[nodiscard]] DramLocation locate(std::uint64_t address) const noexcept {
    const std::uint32_t group = group_.of(address);
    return {channel_.of(address), group, (group << bank_bits_) | bank_.of(address),
            address >> row_shift_};
  }
  /// The bank of another group that has the same bits of the address.
  [[nodiscard]] std::uint32_t bank_of(const DramLocation& at, std::uint32_t group) const noexcept {
    return (group << bank_bits_) | (at.bank & bank_.mask);
  }

  [[nodiscard]] std::uint64_t burst_bytes() const noexcept { return burst_bytes_; }

  /// Bytes that follow each other before another row of some bank begins: a row of the same number
  /// in a bank of every group and channel.
  [[nodiscard]] std::uint64_t open_bytes() const noexcept {
    return std::uint64_t{1} << bank_.shift;
  }

 private:
  struct Field {
    unsigned shift;
    std::uint32_t mask;
    [[nodiscard]] std::uint32_t of(std::uint64_t address) const noexcept {
      return static_cast<std::uint32_t>(address >> shift) & mask;
    }
  };

  Field channel_, group_, bank_;
  unsigned bank_bits_;
  unsigned row_shift_;
  std::uint64_t burst_bytes_;
};

}  // namespace systole::hw

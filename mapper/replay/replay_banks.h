#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "hw/machine/machine.h"

namespace systole::mapper {

/// Port accesses that the clients of an on-chip memory have recorded, and what another client then
/// has to wait: tlm/core/banked_sram.h for a replay. Keeps the newest records alone.
class ReplayBanks {
 public:
  explicit ReplayBanks(const hw::Machine::Sram& sram)
      : ports_(sram.ports),
        banks_(sram.banks),
        bank_bytes_(std::uint64_t{sram.kib} * 1024 / sram.banks) {}

  /// `words` accesses, spread over the addresses [begin, end) and the cycles [from, to).
  struct Use {
    std::uint64_t begin = 0, end = 0, words = 0;
    std::uint64_t from = 0, to = 0;
  };
  void record(const Use& use) {
    if (use.words == 0 || use.begin >= use.end) return;
    const std::uint64_t number = count_++ % kUses;
    Use& slot = uses_[number];
    slot = use;
    if (slot.to <= slot.from) slot.to = slot.from + 1;
    latest_ = std::max(latest_, slot.to);
    until_[number] = latest_;
    banks_of_[number] = {slot.begin / bank_bytes_, (slot.end - 1) / bank_bytes_};
  }
  /// Cycles beyond `to` that the most wanted bank needs for `demands` (their cycles do not count)
  /// and, with `yields`, for what was recorded in [from, to).
  [[nodiscard]] std::uint64_t shortage(const Use* demands, unsigned count, std::uint64_t from,
                                       std::uint64_t to, bool yields) const;

 private:
  static constexpr unsigned kUses = 64;
  static constexpr unsigned kMostBanks = 64;

  std::uint64_t ports_, banks_, bank_bytes_;
  std::uint64_t count_ = 0;
  std::array<Use, kUses> uses_{};
  std::uint64_t latest_ = 0;                  ///< end of all uses so far
  std::array<std::uint64_t, kUses> until_{};  ///< by use: end of all up to it
  struct Banks {
    std::uint64_t first = 0, last = 0;
  };
  std::array<Banks, kUses> banks_of_{};  ///< by use
};

}  // namespace systole::mapper

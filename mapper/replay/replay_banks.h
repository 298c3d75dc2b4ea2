#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"

namespace systole::mapper {

/// Port accesses that the clients of the accumulator have recorded, and what another client then
/// has to wait: BankedSram::record() and shortage() for a replay. Keeps the newest records alone.
class ReplayBanks {
 public:
  /// `kept`: records, a power of two.
  ReplayBanks(const hw::Machine::Accumulator& sram, std::size_t kept)
      : accesses_(sram.bank_accesses()),
        serves_all_(sram.serves_all()),
        banks_(sram.banks),
        bank_bytes_(sram.bank_bytes()),
        records_(kept) {}

  /// `words` accesses, spread over the addresses [begin, end) and the cycles [from, to).
  struct Use {
    std::uint64_t begin = 0, end = 0, words = 0;
    std::uint64_t from = 0, to = 0;
  };
  void record(const Use& use) {
    if (serves_all_ || use.words == 0 || use.begin >= use.end) return;
    Record& record = records_[count_++ & (records_.size() - 1)];
    record.use = use;
    if (use.to <= use.from) record.use.to = use.from + 1;
    latest_ = std::max(latest_, record.use.to);
    record.until = latest_;
    record.first_bank = use.begin / bank_bytes_;
    record.last_bank = (use.end - 1) / bank_bytes_;
  }
  /// Cycles beyond `to` that the most wanted bank needs for `demands` (their cycles do not count)
  /// and, with `yields`, for what was recorded in [from, to).
  [[nodiscard]] std::uint64_t shortage(const Use* demands, unsigned count, std::uint64_t from,
                                       std::uint64_t to, bool yields) const;

 private:
  static constexpr unsigned kMostBanks = 64;
  struct Record {
    Use use;
    std::uint64_t until = 0;  ///< end of all uses up to it
    std::uint64_t first_bank = 0, last_bank = 0;
  };

  std::uint64_t accesses_;
  bool serves_all_;
  std::uint64_t banks_, bank_bytes_;
  std::uint64_t count_ = 0;
  std::vector<Record> records_;
  std::uint64_t latest_ = 0;  ///< end of all uses so far
};

}  // namespace systole::mapper

#include "mapper/replay/replay_banks.h"

#include <algorithm>

#include "base/round.h"
#include "hw/core/bank_words.h"

namespace systole::mapper {

std::uint64_t ReplayBanks::shortage(const Use* demands, unsigned count, std::uint64_t from,
                                    std::uint64_t to, bool yields) const {
  if (serves_all_) return 0;
  const std::uint64_t capacity = (to - from) * accesses_;
  if (!yields) {
    std::uint64_t words = 0;
    for (unsigned i = 0; i < count; ++i) words += demands[i].words;
    if (words <= capacity) return 0;
  }
  std::array<std::uint64_t, kMostBanks> wanted;
  std::fill_n(wanted.begin(), banks_, std::uint64_t{0});
  std::uint64_t lowest = ~std::uint64_t{0};
  std::uint64_t highest = 0;
  for (unsigned i = 0; i < count; ++i) {
    const Use& demand = demands[i];
    if (demand.words == 0 || demand.begin >= demand.end) continue;
    lowest = std::min(lowest, demand.begin / bank_bytes_);
    highest = std::max(highest, std::min((demand.end - 1) / bank_bytes_, banks_ - 1));
    hw::for_each_bank(bank_bytes_, demand.begin, demand.end, demand.words,
                      [&](std::size_t bank, std::uint64_t share) {
                        // The pitch of the last row may lead out of the memory.
                        if (bank < banks_) wanted[bank] += share;
                      });
  }
  if (lowest > highest) return 0;
  if (yields) {
    // The newest first: those before one that all end too early do, too.
    const std::uint64_t oldest = count_ - std::min<std::uint64_t>(count_, records_.size());
    for (std::uint64_t i = count_; i > oldest; --i) {
      const Record& record = records_[(i - 1) & (records_.size() - 1)];
      if (record.until <= from) break;
      if (record.first_bank > highest || record.last_bank < lowest) continue;
      const Use& use = record.use;
      const std::uint64_t begin = std::max(from, use.from);
      const std::uint64_t end = std::min(to, use.to);
      if (begin >= end) continue;
      const auto add = [&](std::size_t bank, std::uint64_t share) {
        if (bank >= banks_ || wanted[bank] == 0) return;
        const bool whole = begin == use.from && end == use.to;
        wanted[bank] += whole ? share : share * (end - begin) / (use.to - use.from);
      };
      if (record.first_bank == record.last_bank) {
        add(record.first_bank, use.words);
      } else {
        hw::for_each_bank(bank_bytes_, use.begin, use.end, use.words, add);
      }
    }
  }
  std::uint64_t worst = 0;
  for (std::uint64_t bank = lowest; bank <= highest; ++bank) worst = std::max(worst, wanted[bank]);
  return worst > capacity ? ceil_div(worst - capacity, accesses_) : 0;
}

}  // namespace systole::mapper

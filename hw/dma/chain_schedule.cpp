#include "hw/dma/chain_schedule.h"

#include <algorithm>

#include "hw/postop/microcode.h"

namespace systole::hw {

ChainSchedule::ChainSchedule(const ProgramHeader& header, std::size_t slots, std::size_t stages)
    : header_(header),
      record_bytes_(std::min<std::uint64_t>(
          header.chain_bytes, RecordLook::kRecordWord * (1 + stages * kMicrocodeWords))),
      chains_(slots) {}

std::uint64_t ChainSchedule::ready(FetchSchedule& fetch, std::optional<std::uint32_t> chain,
                                   std::optional<std::uint32_t> operand, std::uint64_t arrival,
                                   std::uint64_t next) {
  std::uint64_t ready = next;
  look_.next(arrival);
  if (chain) {
    if (!chains_.holds(*chain)) {
      const std::uint64_t free = chains_.free_from(*chain).value();
      const std::uint64_t there =
          fetch.record(header_.chain(*chain), record_bytes_, look_.asks(free));
      ready = std::max(ready, look_.take_chain(there, record_bytes_));
    }
    chains_.use(*chain);
  }
  if (operand) {
    const std::uint64_t there =
        fetch.record(header_.operand(*operand), kOperandTileBytes, look_.asks());
    ready = std::max(ready, look_.take_entry(there));
  }
  fetch.is_looked(look_.end());
  return ready;
}

void ChainSchedule::is_used(std::uint32_t chain, std::uint64_t completed) {
  chains_.leave(chain, completed);
}

}  // namespace systole::hw

#include "hw/dma/chain_schedule.h"

#include <algorithm>

#include "hw/postop/microcode.h"

namespace systole::hw {
namespace {

/// From the cycle with which a record is there to its first word, and after its last one: the
/// buffer is read, what matters of the chain goes into its slot.
constexpr std::uint64_t kRecordCycles = 3;
constexpr std::uint64_t kRecordWord = 8;  ///< bytes that leave the buffer in a cycle

}  // namespace

ChainSchedule::ChainSchedule(const ProgramHeader& header, std::size_t slots, std::size_t stages)
    : header_(header),
      record_bytes_(std::min<std::uint64_t>(header.chain_bytes,
                                            kRecordWord * (1 + stages * kMicrocodeWords))),
      held_(slots) {}

std::uint64_t ChainSchedule::ready(FetchSchedule& fetch, std::uint32_t chain, std::uint64_t next,
                                   std::uint64_t unused) {
  std::optional<std::uint32_t>& slot = held_[chain % held_.size()];
  if (slot == chain) return next;
  const std::uint64_t seen = slot ? std::max(next, unused) : next;
  slot = chain;
  const std::uint64_t there = fetch.record(header_.chain(chain), record_bytes_, seen + 1);
  return there + record_bytes_ / kRecordWord + kRecordCycles;
}

}  // namespace systole::hw

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
      slots_(slots) {}

std::uint64_t ChainSchedule::ready(FetchSchedule& fetch, std::optional<std::uint32_t> chain,
                                   std::optional<std::uint32_t> operand, std::uint64_t arrival,
                                   std::uint64_t next) {
  std::uint64_t looked = std::max(look_, arrival);
  std::uint64_t ready = next;
  if (chain && slot_of(*chain).held != chain) {
    Slot& slot = slot_of(*chain);
    const std::uint64_t seen = std::max(looked, slot.unused);
    slot.held = chain;
    const std::uint64_t there = fetch.record(header_.chain(*chain), record_bytes_, seen + 1);
    const std::uint64_t leaves = std::max(there, left_);
    left_ = leaves + record_bytes_ / kRecordWord + kRecordCycles;
    looked = leaves + 1;
    ready = std::max(next, left_);
  }
  if (operand) {
    looked = fetch.record(header_.operand(*operand), kOperandTileBytes, looked + 1) + 1;
    ready = std::max(ready, looked);
  }
  look_ = looked + 1;
  fetch.is_looked(look_);
  return ready;
}

void ChainSchedule::is_used(std::uint32_t chain, std::uint64_t completed) {
  std::uint64_t& unused = slot_of(chain).unused;
  unused = std::max(unused, completed);
}

}  // namespace systole::hw

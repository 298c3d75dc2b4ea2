#include "tlm/dma/tlb.h"

#include <algorithm>

#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {
namespace {

/// A table of Sv39 has 512 entries of 8 bytes.
constexpr std::uint64_t kEntryBytes = 8;
constexpr unsigned kLevelBits = 9;

}  // namespace

Tlb::Tlb(const hw::Machine& machine)
    : params_(machine.tlb),
      capacity_(std::uint64_t{machine.dram.mib} << 20),
      table_(1, params_.entries),
      known_from_(params_.entries, 0) {
  if (params_.second_entries != 0) second_.emplace(params_.second_entries, 1);
}

// Level after level, downwards from the end of memory.
std::uint64_t Tlb::entry_address(std::uint64_t page, std::uint32_t level) const {
  std::uint64_t pages = (capacity_ + params_.page_bytes - 1) / params_.page_bytes;
  std::uint64_t end = capacity_;
  for (std::uint32_t i = 0; i < level; ++i) {
    end -= pages * kEntryBytes;
    pages = (pages >> kLevelBits) + 1;
    page >>= kLevelBits;
  }
  return end - (page + 1) * kEntryBytes;
}

Tlb::Answer Tlb::translate(std::uint64_t page, std::uint64_t cycle, DmaPort& walker) {
  std::uint64_t known = cycle + params_.hit_cycles;
  const hw::CacheTags::Access place = table_.access(page, false);
  if (place.hit) return {true, std::max(known, known_from_[place.slot])};
  known = std::max(known, walker_free_) + params_.miss_cycles;
  const bool walks = !second_ || !second_->access(page, false).hit;
  for (std::uint32_t level = walks ? params_.walk_reads : 0; level-- > 0;) {
    std::uint8_t entry[kEntryBytes];
    known = walker.read(entry_address(page, level), entry, kEntryBytes, known);
  }
  walker_free_ = std::max(walker_free_, known);
  known_from_[place.slot] = known;
  return {false, known};
}

}  // namespace systole::tlm_model

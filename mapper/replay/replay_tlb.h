#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/memory/cache_tags.h"
#include "mapper/replay/replay_ports.h"

namespace systole::mapper {

/// tlm/dma/tlb.h for a replay: the same tables, but a walk reads an idle memory.
class ReplayTlb {
 public:
  /// `read`: cycles of a read of the page table.
  ReplayTlb(const hw::Machine::Tlb& params, double read)
      : params_(params), read_(read), table_(1, params.entries), known_from_(params.entries, 0) {
    if (params_.second_entries != 0) second_.emplace(params_.second_entries, 1);
  }

  [[nodiscard]] std::uint64_t page_of(std::uint64_t address) const noexcept {
    return address / params_.page_bytes;
  }
  [[nodiscard]] std::uint64_t end_of(std::uint64_t page) const noexcept {
    return (page + 1) * params_.page_bytes;
  }

  /// Cycle in which a port that asks in cycle `cycle` knows where the page is.
  double translate(std::uint64_t page, double cycle) {
    double known = cycle + params_.hit_cycles;
    const hw::CacheTags::Access place = table_.access(page, false);
    if (place.hit) return std::max(known, known_from_[place.slot]);
    known = std::max(known, walker_free_) + params_.miss_cycles;
    const bool walks = !second_ || !second_->access(page, false).hit;
    if (walks) known += rounded_up(params_.walk_reads * read_);
    walker_free_ = std::max(walker_free_, known);
    known_from_[place.slot] = known;
    return known;
  }

 private:
  hw::Machine::Tlb params_;
  double read_;
  hw::CacheTags table_;
  std::optional<hw::CacheTags> second_;
  std::vector<double> known_from_;
  double walker_free_ = 0;
};

}  // namespace systole::mapper

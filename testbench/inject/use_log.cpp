#include "testbench/inject/use_log.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace systole::testbench {
namespace {

/// A power of two: few uses that touch a page do not use a byte of it.
constexpr std::uint64_t kPageBytes = 64;

/// The first of a use's repeats at or after `cycle`, at most `use.repeats`.
std::uint64_t first_repeat(const tlm_model::StoredUse& use, std::int64_t first,
                           std::uint64_t cycle) {
  const std::int64_t late = static_cast<std::int64_t>(cycle) - first;
  if (late <= 0) return 0;
  if (use.repeats == 1) return 1;
  const std::uint64_t repeat =
      (static_cast<std::uint64_t>(late) + use.repeat_cycles - 1) / use.repeat_cycles;
  return std::min(repeat, use.repeats);
}

void add_toggle(FlipPlan& plan, std::uint64_t step, tlm_model::MatmulSplit split = {}) {
  if (plan.toggles == FlipPlan::kToggles) {
    throw std::logic_error("reads of a byte are in another order in time than in steps");
  }
  plan.toggle[plan.toggles++] = {step, split};
}

}  // namespace

std::uint64_t UseLog::page_of(hw::Space space, std::uint64_t address) {
  return address / kPageBytes * 4 + static_cast<std::uint64_t>(space);
}

void UseLog::use(tlm_model::StoredUse use) {
  const auto position = static_cast<std::uint32_t>(uses_.size());
  for (std::uint64_t row = 0; row < use.rows && use.bytes != 0; ++row) {
    const std::uint64_t begin = use.address + row * use.pitch;
    for (std::uint64_t at = begin / kPageBytes; at <= (begin + use.bytes - 1) / kPageBytes; ++at) {
      std::vector<std::uint32_t>& page = pages_[page_of(use.space, at * kPageBytes)];
      if (page.empty() || page.back() != position) page.push_back(position);
    }
  }
  uses_.push_back(std::move(use));
}

std::vector<UseLog::Found> UseLog::uses_of(hw::Space space, std::uint64_t address) const {
  std::vector<Found> found;
  const auto page = pages_.find(page_of(space, address));
  if (page == pages_.end()) return found;
  for (const std::uint32_t position : page->second) {
    const tlm_model::StoredUse& use = uses_[position];
    if (address < use.address) continue;
    const std::uint64_t offset = address - use.address;
    const std::uint64_t row = use.rows == 1 ? 0 : offset / use.pitch;
    const std::uint64_t byte = offset - row * use.pitch * (use.rows == 1 ? 0 : 1);
    if (row >= use.rows || byte >= use.bytes) continue;
    found.push_back({&use, use.cycle_of(row, byte)});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.use->first_step < b.use->first_step;
  });
  return found;
}

FlipPlan::Fate UseLog::checked(hw::Space space, std::uint64_t address, std::uint64_t cycle,
                               const hw::WordCode& code, std::uint32_t flips) const {
  const FlipPlan::Fate found = code.protection == hw::Protection::kSecded && flips == 1
                                   ? FlipPlan::Fate::kCorrected
                                   : FlipPlan::Fate::kDetected;
  // The first cycle at or after the flip in which each byte of the word is used.
  constexpr std::int64_t kUnused = std::numeric_limits<std::int64_t>::max();
  std::int64_t read = kUnused, written = kUnused;
  std::uint64_t written_bytes = 0;
  const std::uint64_t word = address / code.bytes * code.bytes;
  for (std::uint64_t byte = word; byte < word + code.bytes; ++byte) {
    for (const auto& [use, first] : uses_of(space, byte)) {
      const std::uint64_t repeat = first_repeat(*use, first, cycle);
      if (repeat == use->repeats) continue;
      const std::int64_t at = first + static_cast<std::int64_t>(repeat * use->repeat_cycles);
      if (!use->write || repeat != 0) {
        read = std::min(read, at);
      } else if (at < written) {
        written = at;
        written_bytes = 1;
      } else if (at == written) {
        ++written_bytes;
      }
    }
  }
  if (read == kUnused && written == kUnused) return FlipPlan::Fate::kUnused;
  // A write of a part of the word reads it first.
  if (written <= read && written_bytes == code.bytes) return FlipPlan::Fate::kOverwritten;
  return found;
}

FlipPlan UseLog::resolve(const hw::ArrayFlip& flip, std::uint64_t cycle) const {
  FlipPlan plan;
  const auto now = static_cast<std::int64_t>(cycle);
  // What follows a product may have begun before that has left the last element.
  for (auto product = products_.rbegin(); product != products_.rend(); ++product) {
    const auto met = hw::array_flip_at(product->schedule, product->m, now - product->begun, flip);
    if (!met) continue;
    plan.fate = FlipPlan::Fate::kRead;
    plan.in_array = true;
    plan.array = *met;
    add_toggle(plan, product->step);
    break;
  }
  return plan;
}

FlipPlan UseLog::resolve(hw::Space space, std::uint64_t address, std::uint64_t cycle,
                         const hw::WordCode& code, std::uint32_t flips) const {
  FlipPlan plan;
  const bool sees = code.protection == hw::Protection::kSecded ||
                    (code.protection == hw::Protection::kParity && flips % 2 == 1);
  if (sees) {
    plan.fate = checked(space, address, cycle, code, flips);
    return plan;
  }
  bool flipped = false;
  for (const auto& [use, first] : uses_of(space, address)) {
    const std::uint64_t repeat = first_repeat(*use, first, cycle);
    if (repeat == 0 && use->write) {
      if (plan.toggles == 0) plan.fate = FlipPlan::Fate::kOverwritten;
      return plan;
    }
    if (repeat == 0) {
      plan.fate = FlipPlan::Fate::kRead;
      if (!flipped) add_toggle(plan, use->first_step);
      flipped = true;
      // What replaces the bits has their error already.
      if (use->modifies) return plan;
      continue;
    }
    // A use before the flip, at least in part.
    if (flipped) add_toggle(plan, use->first_step);
    flipped = repeat < use->repeats;
    if (flipped) {
      plan.fate = FlipPlan::Fate::kRead;
      add_toggle(plan, use->first_step, {use->tiles, repeat});
      if (use->tiles == hw::ArrayTiles::kDepth) return plan;
    } else if (plan.toggles == 0) {
      plan.earliest = std::max(plan.earliest, use->last_step + 1);
    }
  }
  return plan;
}

}  // namespace systole::testbench

#include "tlm/core/scoreboard.h"

#include <algorithm>
#include <utility>

#include "hw/program/dispatch.h"
#include "hw/program/program_ranges.h"

namespace systole::tlm_model {

using hw::Hazard;

std::unique_ptr<Entry> Scoreboard::take() {
  if (gone_.empty()) return std::make_unique<Entry>();
  std::unique_ptr<Entry> entry = std::move(gone_.back());
  gone_.pop_back();
  entry->renew();
  return entry;
}

Entry* Scoreboard::dispatch(const hw::Command& command, std::uint32_t index, std::uint64_t cycle) {
  std::unique_ptr<Entry> entry = take();
  entry->command = command;
  entry->index = index;
  entry->unit = hw::unit_of(command.opcode());
  entry->dispatched = entry->ready = entry->readable = cycle;
  // A command of the host is a fence: nothing else is in flight.
  if (entry->unit != hw::Unit::kHost) {
    hw::for_each_range(command, program_,
                       [&](const hw::Range& range) { entry->ranges_.push_back(range); });
  }
  for (const auto& older : flight_) {
    // Loops keep their own order.
    if (older->unit == hw::Unit::kLoop && entry->unit == hw::Unit::kLoop) continue;
    const bool both_compute =
        older->unit == hw::Unit::kCompute && entry->unit == hw::Unit::kCompute;
    const Hazard found = hw::hazard_between(older->ranges_, entry->ranges_, both_compute);
    if (found == Hazard::kNone || (found == Hazard::kAfterRead && older->released_)) continue;
    ++entry->waiting_;
    entry->was_blocked = true;
    if (found == Hazard::kAfterRead) {
      older->on_release_.push_back(entry.get());
      continue;
    }
    older->on_complete_.push_back(entry.get());
    if (entry->unit == hw::Unit::kStore &&
        hw::writes_what_is_read(older->ranges_, entry->ranges_)) {
      older->readers_.push_back(entry.get());
      ++entry->writers_;
    }
  }
  ++per_unit_[static_cast<std::size_t>(entry->unit)];
  flight_.push_back(std::move(entry));
  return flight_.back().get();
}

void Scoreboard::wake(Entry* blocker, bool released, std::vector<Entry*>& waiters,
                      std::uint64_t cycle) {
  for (Entry* waiter : waiters) {
    if (--waiter->waiting_ != 0) continue;
    waiter->ready = cycle;
    waiter->last_blocker = blocker->unit;
    waiter->blocker_index = blocker->index;
    waiter->blocker_released = released;
    ready_.push_back(waiter);
  }
  waiters.clear();
}

const std::vector<Entry*>& Scoreboard::release(Entry* entry, std::uint64_t cycle) {
  ready_.clear();
  entry->released_ = true;
  entry->operands_read = cycle;
  wake(entry, true, entry->on_release_, cycle);
  return ready_;
}

const std::vector<Entry*>& Scoreboard::complete(Entry* entry, std::uint64_t cycle) {
  ready_.clear();
  for (Entry* reader : entry->readers_) {
    reader->readable = cycle;
    --reader->writers_;
  }
  wake(entry, false, entry->on_release_, cycle);
  wake(entry, false, entry->on_complete_, cycle);
  --per_unit_[static_cast<std::size_t>(entry->unit)];
  const auto found = std::find_if(flight_.begin(), flight_.end(),
                                  [entry](const auto& other) { return other.get() == entry; });
  gone_.push_back(std::move(*found));
  flight_.erase(found);
  return ready_;
}

}  // namespace systole::tlm_model

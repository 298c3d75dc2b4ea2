#include "tlm/core/scoreboard.h"

#include <algorithm>

#include "hw/program/dispatch.h"

namespace systole::tlm_model {

using hw::Hazard;

Entry* Scoreboard::dispatch(const hw::Command& command, std::uint32_t index, std::uint64_t cycle) {
  auto entry = std::make_unique<Entry>();
  entry->command = command;
  entry->index = index;
  entry->unit = hw::unit_of(command.opcode());
  entry->dispatched = entry->ready = cycle;
  // A command of the host is a fence: nothing else is in flight.
  if (entry->unit != hw::Unit::kHost) entry->ranges_ = hw::ranges_of(command, program_);
  for (const auto& older : flight_) {
    // Loops keep their own order.
    if (older->unit == hw::Unit::kLoop && entry->unit == hw::Unit::kLoop) continue;
    const bool both_compute =
        older->unit == hw::Unit::kCompute && entry->unit == hw::Unit::kCompute;
    const Hazard found = hw::hazard_between(older->ranges_, entry->ranges_, both_compute);
    if (found == Hazard::kNone || (found == Hazard::kAfterRead && older->released_)) continue;
    ++entry->waiting_;
    entry->was_blocked = true;
    (found == Hazard::kAfterRead ? older->on_release_ : older->on_complete_).push_back(entry.get());
  }
  ++per_unit_[static_cast<std::size_t>(entry->unit)];
  flight_.push_back(std::move(entry));
  return flight_.back().get();
}

void Scoreboard::wake(Entry* blocker, bool released, std::vector<Entry*>& waiters,
                      std::uint64_t cycle, std::vector<Entry*>& ready) {
  for (Entry* waiter : waiters) {
    if (--waiter->waiting_ != 0) continue;
    waiter->ready = cycle;
    waiter->last_blocker = blocker->unit;
    waiter->blocker_index = blocker->index;
    waiter->blocker_released = released;
    ready.push_back(waiter);
  }
  waiters.clear();
}

std::vector<Entry*> Scoreboard::release(Entry* entry, std::uint64_t cycle) {
  std::vector<Entry*> ready;
  entry->released_ = true;
  entry->operands_read = cycle;
  wake(entry, true, entry->on_release_, cycle, ready);
  return ready;
}

std::vector<Entry*> Scoreboard::complete(Entry* entry, std::uint64_t cycle) {
  std::vector<Entry*> ready;
  wake(entry, false, entry->on_release_, cycle, ready);
  wake(entry, false, entry->on_complete_, cycle, ready);
  --per_unit_[static_cast<std::size_t>(entry->unit)];
  flight_.erase(std::find_if(flight_.begin(), flight_.end(),
                             [entry](const auto& other) { return other.get() == entry; }));
  return ready;
}

}  // namespace systole::tlm_model

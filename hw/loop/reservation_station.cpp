#include "hw/loop/reservation_station.h"

namespace systole::hw::loop {

ReservationStation::ReservationStation(const std::array<std::uint32_t, kClasses>& entries) {
  for (std::size_t i = 0; i < kClasses; ++i) entries_[i].resize(entries[i]);
}

Class ReservationStation::class_of(Kind kind) {
  switch (kind) {
    case Kind::kConfigureLoad:
    case Kind::kLoad:
      return kLoadClass;
    case Kind::kConfigureStore:
    case Kind::kStore:
      return kStoreClass;
    default:
      return kComputeClass;
  }
}

ReservationStation::Entry ReservationStation::make_entry(const Command& command) const {
  Entry entry;
  entry.valid = true;
  entry.command = command;
  switch (command.kind) {
    case Kind::kLoad:
    case Kind::kStore: {
      // Blocks of columns lie one after the other, a block of rows each.
      const std::uint32_t side = command.block_rows;
      const std::uint32_t blocks = (command.cols + side - 1) / side;
      entry.first = {command.row, command.row + (blocks - 1) * side + command.rows};
      entry.has_first = true;
      entry.first_is_written = command.kind == Kind::kLoad;
      break;
    }
    case Kind::kPreload:
      entry.first = {command.c_row, command.c_row + command.c_rows};
      entry.has_first = entry.first_is_written = true;
      entry.second = {command.row, command.row + command.rows};
      entry.has_second = !command.garbage;
      break;
    case Kind::kCompute:
      entry.first = {command.row, command.row + command.rows};
      entry.has_first = true;
      break;
    default:
      break;
  }
  return entry;
}

std::uint32_t ReservationStation::hazards(const Entry& entry, Class own, Class other) const {
  const bool configures = loop::configures(entry.command.kind);
  std::uint32_t waits = 0;
  for (std::size_t i = 0; i < entries_[other].size(); ++i) {
    const Entry& older = entries_[other][i];
    if (!older.valid) continue;
    bool hazard = false;
    if (own == other) {
      hazard = !older.issued;
    } else if (!configures && older.has_first && entry.has_first) {
      hazard = entry.first.overlaps(older.first);
      if (own == kStoreClass && other == kComputeClass) hazard &= older.first_is_written;
      if (own == kComputeClass && other == kStoreClass) hazard &= entry.first_is_written;
      if (own == kComputeClass && other == kLoadClass && entry.has_second) {
        hazard |= entry.second.overlaps(older.first);
      }
      if (own == kLoadClass && other == kComputeClass && older.has_second) {
        hazard |= entry.first.overlaps(older.second);
      }
    }
    if (hazard) waits |= 1U << i;
  }
  return waits;
}

int ReservationStation::free_slot(Class kind) const {
  for (std::size_t i = 0; i < entries_[kind].size(); ++i) {
    if (!entries_[kind][i].valid) return static_cast<int>(i);
  }
  return -1;
}

int ReservationStation::ready_slot(Class kind) const {
  for (std::size_t i = 0; i < entries_[kind].size(); ++i) {
    const Entry& entry = entries_[kind][i];
    if (entry.valid && !entry.issued && (entry.waits[0] | entry.waits[1] | entry.waits[2]) == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

const Command* ReservationStation::ready(Class kind) const {
  const int slot = ready_slot(kind);
  return slot < 0 ? nullptr : &entries_[kind][static_cast<std::size_t>(slot)].command;
}

bool ReservationStation::has_room(const Command& command) const {
  return free_slot(class_of(command.kind)) >= 0;
}

void ReservationStation::clear(Class kind, std::uint32_t slot) {
  const std::uint32_t mask = ~(1U << slot);
  for (std::vector<Entry>& entries : entries_) {
    for (Entry& entry : entries) entry.waits[kind] &= mask;
  }
}

std::array<std::uint32_t, kClasses> ReservationStation::end_cycle(
    const Command* allocated, const Done& done, const std::array<bool, kClasses>& issued) {
  std::array<std::uint32_t, kClasses> ended{};
  std::array<int, kClasses> slots{-1, -1, -1};
  for (const Class kind : {kLoadClass, kComputeClass, kStoreClass}) {
    if (issued[kind]) slots[kind] = ready_slot(kind);
  }
  if (allocated != nullptr) {
    const Class own = class_of(allocated->kind);
    const auto slot = static_cast<std::size_t>(free_slot(own));
    Entry entry = make_entry(*allocated);
    entry.command.slot = static_cast<std::uint16_t>(slot);
    for (const Class other : {kLoadClass, kComputeClass, kStoreClass}) {
      entry.waits[other] = hazards(entry, own, other);
    }
    entries_[own][slot] = entry;
    if (own == kComputeClass && !configures(allocated->kind)) {
      lone_preload_ = allocated->kind == Kind::kPreload;
    }
  }
  if (done.any) {
    Entry& entry = entries_[done.kind][done.slot];
    if (entry.command.unrolled) ++ended[done.kind];
    entry.valid = false;
    clear(done.kind, done.slot);
  }
  for (const Class kind : {kLoadClass, kComputeClass, kStoreClass}) {
    if (slots[kind] < 0) continue;
    Entry& entry = entries_[kind][static_cast<std::size_t>(slots[kind])];
    entry.issued = true;
    for (Entry& younger : entries_[kind]) {
      younger.waits[kind] &= ~(1U << static_cast<std::uint32_t>(slots[kind]));
    }
    // Loads and stores are configured as they issue.
    if (kind != kComputeClass && configures(entry.command.kind)) {
      entry.valid = false;
      clear(kind, static_cast<std::uint32_t>(slots[kind]));
    }
  }
  return ended;
}

bool ReservationStation::busy() const {
  std::size_t valid = 0;
  for (const std::vector<Entry>& entries : entries_) {
    for (const Entry& entry : entries) valid += entry.valid ? 1 : 0;
  }
  return valid != 0 && !(valid == 1 && lone_preload_);
}

}  // namespace systole::hw::loop

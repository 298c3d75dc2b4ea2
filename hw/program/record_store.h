#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace systole::hw {

/// Which records of a program's table (chains, mixes) a core holds: record i in slot i modulo the
/// number of slots. The contents live in hw::Program; this is about what has to be fetched again.
/// A record may be replaced once all commands that refer to it are complete, whatever else is in
/// flight.
class RecordStore {
 public:
  explicit RecordStore(std::size_t slots) : slots_(slots) {}

  void clear() { slots_.assign(slots_.size(), {}); }
  [[nodiscard]] bool holds(std::uint32_t index) const { return slot_of(index).held == index; }
  /// The cycle from which the slot of a record is free for another one; none: it is not known yet,
  /// as commands that refer to what it holds have not completed.
  [[nodiscard]] std::optional<std::uint64_t> free_from(std::uint32_t index) const {
    const Slot& slot = slot_of(index);
    return slot.users == 0 ? std::optional(slot.free) : std::nullopt;
  }
  /// A command refers to the record, which is in its slot from now on.
  void use(std::uint32_t index) {
    Slot& slot = slot_of(index);
    slot.held = index;
    ++slot.users;
  }
  /// One that refers to the record is complete with `cycle`.
  void leave(std::uint32_t index, std::uint64_t cycle) {
    Slot& slot = slot_of(index);
    --slot.users;
    slot.free = std::max(slot.free, cycle);
  }

 private:
  struct Slot {
    std::optional<std::uint32_t> held;  ///< index in the program's table
    std::uint64_t users = 0;            ///< commands that were fetched and are not complete
    std::uint64_t free = 0;             ///< cycle with which those before were
  };

  [[nodiscard]] Slot& slot_of(std::uint32_t index) { return slots_[index % slots_.size()]; }
  [[nodiscard]] const Slot& slot_of(std::uint32_t index) const {
    return slots_[index % slots_.size()];
  }

  std::vector<Slot> slots_;
};

}  // namespace systole::hw

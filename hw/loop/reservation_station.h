#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/loop/loop_types.h"

namespace systole::hw::loop {

/// Gemmini's reservation station: for each class a number of entries, from which commands issue to
/// their controller in order, and wait for older commands of the other classes that overlap in the
/// local memories. An entry is free again when its command has completed, not when it has issued.
class ReservationStation {
 public:
  /// At most 32 entries in each class.
  explicit ReservationStation(const std::array<std::uint32_t, kClasses>& entries);

  /// The commands that completed in a cycle; at most one of them, by what the controllers agree.
  struct Done {
    bool any = false;
    Class kind = kLoadClass;
    std::uint16_t slot = 0;
  };

  /// Which command of a class can issue; null: none.
  [[nodiscard]] const Command* ready(Class kind) const;
  /// Whether there is an entry for the command.
  [[nodiscard]] bool has_room(const Command& command) const;

  /// The end of a cycle, in this order: takes `allocated` (null: nothing), whose hazards are those
  /// with the entries as they were; frees the entry of `done`; marks what issued.
  /// Returns for each class how many commands of the unroller have ended.
  std::array<std::uint32_t, kClasses> end_cycle(const Command* allocated, const Done& done,
                                                const std::array<bool, kClasses>& issued);

  [[nodiscard]] bool busy() const;
  [[nodiscard]] static Class class_of(Kind kind);

 private:
  struct Entry {
    bool valid = false, issued = false;
    bool first_is_written = false;
    bool has_first = false, has_second = false;
    Rows first, second;  ///< kPreload: result, weights; kCompute: A; kLoad, kStore: its rows
    std::array<std::uint32_t, kClasses> waits{};  ///< bits of entries by class
    Command command;
  };

  [[nodiscard]] Entry make_entry(const Command& command) const;
  [[nodiscard]] std::uint32_t hazards(const Entry& entry, Class own, Class other) const;
  [[nodiscard]] int free_slot(Class kind) const;
  [[nodiscard]] int ready_slot(Class kind) const;
  void clear(Class kind, std::uint32_t slot);

  std::array<std::vector<Entry>, kClasses> entries_;
  bool lone_preload_ = false;  ///< the last command of the array was a preload
};

}  // namespace systole::hw::loop

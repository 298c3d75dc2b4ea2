#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace systole::hw {

/// Which records of a program's table (chains, mixes) a core holds: record i in slot i modulo the
/// number of slots. The contents live in hw::Program; this is about what has to be fetched again.
class RecordStore {
 public:
  struct Slot {
    std::optional<std::uint32_t> held;  ///< index in the program's table
    std::uint64_t last_use = 0;         ///< position of the last command fetched that refers to it
  };

  explicit RecordStore(std::size_t slots) : slots_(slots) {}

  void clear() { slots_.assign(slots_.size(), {}); }
  [[nodiscard]] bool holds(std::uint32_t index) const { return slot_of(index).held == index; }
  [[nodiscard]] const Slot& slot_of(std::uint32_t index) const {
    return slots_[index % slots_.size()];
  }
  /// Command `user` refers to the record, which is in its slot from now on.
  void use(std::uint32_t index, std::uint64_t user) {
    slots_[index % slots_.size()] = {index, user};
  }

 private:
  std::vector<Slot> slots_;
};

}  // namespace systole::hw

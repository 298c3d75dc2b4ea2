#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace systole::hw::loop {

/// The commands that a controller has begun and not ended, with what is left of each: bytes of a
/// load, blocks of a store.
class TrackedCommands {
 public:
  explicit TrackedCommands(std::size_t count) : entries_(count) {}

  /// The entry of a command that begins; nothing if all entries are taken.
  [[nodiscard]] std::optional<std::uint8_t> begin(std::uint16_t slot, std::uint64_t left) {
    const auto free = std::find_if(entries_.begin(), entries_.end(),
                                   [](const Entry& entry) { return !entry.valid; });
    if (free == entries_.end()) return std::nullopt;
    *free = {true, slot, left};
    return static_cast<std::uint8_t>(free - entries_.begin());
  }
  void subtract(std::uint8_t entry, std::uint64_t amount) { entries_[entry].left -= amount; }

  /// The slot in the reservation station of a command of which nothing is left.
  [[nodiscard]] std::optional<std::uint16_t> done() const {
    const auto found = std::find_if(entries_.begin(), entries_.end(), ended);
    if (found == entries_.end()) return std::nullopt;
    return found->slot;
  }
  /// Frees the entry of done().
  void take_done() {
    const auto found = std::find_if(entries_.begin(), entries_.end(), ended);
    if (found != entries_.end()) found->valid = false;
  }

 private:
  struct Entry {
    bool valid = false;
    std::uint16_t slot = 0;
    std::uint64_t left = 0;
  };
  static bool ended(const Entry& entry) { return entry.valid && entry.left == 0; }

  std::vector<Entry> entries_;
};

}  // namespace systole::hw::loop

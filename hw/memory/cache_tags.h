#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"

namespace systole::hw {

/// Which lines a set-associative write-back cache holds: a pure state machine without data or time.
///
/// Line n goes to set n mod `sets`. Of a full set the least recently used line makes room, or a
/// random one, by a shift register that takes a step for each. With LRU and a given number of sets,
/// more ways never mean more misses (it is a stack algorithm, Mattson et al. 1970).
class CacheTags {
 public:
  /// A place for a line: set * ways + way.
  using Slot = std::size_t;

  struct Access {
    Slot slot;  ///< where the line resides afterwards
    bool hit;
    std::optional<std::uint64_t> dirty_victim;  ///< the line that had to be written back for it
  };

  /// `sets` and `ways` of at least 1, else std::invalid_argument. The cache is empty.
  CacheTags(std::size_t sets, std::size_t ways, Replacement replacement = Replacement::kLru);

  /// Reads or writes (part of) a line, which the cache holds afterwards, dirty if it was written.
  Access access(std::uint64_t line, bool write);

  /// Where the line resides; nothing changes.
  [[nodiscard]] std::optional<Slot> find(std::uint64_t line) const;

  [[nodiscard]] std::size_t slots() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t dirty_lines() const noexcept;

 private:
  struct Entry {
    std::uint64_t line = 0;
    std::uint64_t last_use = 0;  ///< 0: empty, so an empty place is always the least recent
    bool dirty = false;
  };

  [[nodiscard]] Slot first_of(std::uint64_t line) const {
    return static_cast<Slot>(line % sets_) * ways_;
  }

  [[nodiscard]] Slot victim(std::uint64_t line);

  std::size_t sets_, ways_;
  Replacement replacement_;
  std::uint16_t random_ = 1;
  std::vector<Entry> entries_;  ///< [sets][ways]
  std::uint64_t uses_ = 0;
};

}  // namespace systole::hw

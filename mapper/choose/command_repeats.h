#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"

namespace systole::mapper {

/// Commands of a program that are replayed, and the ones after them that need not be: they repeat
/// the last of these in all that decides about time but places in DRAM.
struct Stretch {
  std::size_t first = 0, last = 0;  ///< replayed: [first, last)
  std::size_t period = 0;           ///< commands that are repeated, the last ones of these
  std::size_t repeats = 0;          ///< so many times

  /// The last period begins here.
  [[nodiscard]] std::size_t measured() const { return last - period; }
  /// After the repeats.
  [[nodiscard]] std::size_t end() const { return last + repeats * period; }
  /// The command that command `index` repeats.
  [[nodiscard]] std::size_t like(std::size_t index) const {
    return measured() + (index - last) % period;
  }
  /// How many periods it comes after that one.
  [[nodiscard]] std::size_t periods_after(std::size_t index) const {
    return 1 + (index - last) / period;
  }
};

/// What repeats takes as long: of commands of the same shapes in the same banks of the scratchpad
/// within 1 %, mostly; whatever their banks are, within a few.
enum class Alike : std::uint8_t { kInBanks, kInShape };

/// All commands of a program, cut into stretches. Loops of tiles leave runs of equal commands, and
/// so do heads: what they take is settled after a period or two. A period is as long as hides how
/// few commands are in flight, and repeated few times before it is replayed again: refreshes, and
/// rows of DRAM, differ from one to the next.
[[nodiscard]] std::vector<Stretch> find_stretches(const hw::Program& program,
                                                  const hw::Machine& machine, Alike alike);

}  // namespace systole::mapper

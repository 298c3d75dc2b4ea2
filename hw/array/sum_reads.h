#pragma once

#include <cstdint>
#include <optional>

namespace systole::hw {

/// What a reader of vectors of sums knows of the other users of the accumulator.
class SumReads {
 public:
  SumReads() = default;
  virtual ~SumReads() = default;

  struct Free {
    std::uint64_t until = 0;  ///< no read waits in a cycle before it
    bool is_known = false;    ///< what may be in the way then, if anything is
  };
  /// Of reads of the sums from `first` to `last`, from a cycle on.
  [[nodiscard]] virtual Free free(std::uint64_t from, std::uint64_t first,
                                  std::uint64_t last) const = 0;
  /// Whether the sums from `first` to `last` can be read in a cycle; none: that is not known yet.
  [[nodiscard]] virtual std::optional<bool> can_read(std::uint64_t cycle, std::uint64_t first,
                                                     std::uint64_t last) const = 0;

 protected:
  SumReads(const SumReads&) = default;
  SumReads& operator=(const SumReads&) = default;
};

}  // namespace systole::hw

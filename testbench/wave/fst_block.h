#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbench/wave/wave_file.h"

namespace systole::testbench {

/// A number as FST files have it in their heads and blocks: eight bytes, the highest first.
[[nodiscard]] std::string fst_number(std::uint64_t value);

/// Appends `width` binary digits, '0', '1', 'x' and 'z': a byte that says whether all are 0 or 1,
/// then these as bits, the first one the highest of the first byte, or the digits as they are.
void pack_digits(const char* digits, unsigned width, std::string& to);
/// Bytes of what pack_digits() has appended.
[[nodiscard]] std::size_t packed_bytes(const char* packed, unsigned width);

/// Changes of a stretch of time as a block of an FST file, kind 8 of GTKWave's fstapi.c. That
/// file's own writer takes each change as text and unpacks it again for the block, which costs
/// three times as much as this does.
///
/// Of each signal the block has its changes one after the other: the number of time steps since the
/// last one, and the value. The time steps are at the end, all values at its beginning ahead of
/// the changes.
class FstBlock {
 public:
  /// Widths in bits by signal: 1 to 64, or more for those whose changes are digits.
  explicit FstBlock(const std::vector<unsigned>& widths);

  /// A later time, ps, than the one before.
  void stamp(std::uint64_t time);
  /// A change at the time of the last stamp.
  void change(std::size_t signal, const RecordedValue& value);
  /// Of the last stamp, from 0 in this block.
  [[nodiscard]] std::uint64_t step() const noexcept { return steps_ - 1; }
  /// A change at any step of the block so far, no earlier than the signal's last one. `packed`: see
  /// pack_digits().
  void change_at(std::size_t signal, std::uint64_t step, const char* packed);

  /// Of changes since the last take(), before they are compressed.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// The block of all changes since the last one, with at least one stamp. The next one begins at
  /// the last time.
  [[nodiscard]] std::string take();

 private:
  struct Variable {
    unsigned width;
    std::size_t digits;       ///< where its digits are in `first_`
    std::string changes;      ///< of the block
    std::uint64_t last_step;  ///< with a change
    RecordedValue value;
    bool is_packed;      ///< the last change was
    std::string packed;  ///< that
  };
  void put(Variable& variable, const char* text, std::size_t bytes);
  static std::uint64_t steps_since_last(Variable& variable, std::uint64_t step);

  void put_digits(const Variable& variable, std::string& to) const;
  [[nodiscard]] std::string chains(std::string& index) const;

  std::vector<Variable> variables_;
  std::string first_;        ///< digits at the beginning of the block
  std::string times_;        ///< differences
  std::uint64_t steps_ = 0;  ///< in `times_`
  std::uint64_t begin_ = 0, now_ = 0;
  std::uint64_t bytes_ = 0;
  bool begun_ = false;
};

}  // namespace systole::testbench

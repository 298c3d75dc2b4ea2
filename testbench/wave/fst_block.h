#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbench/wave/wave_file.h"

namespace systole::testbench {

/// A number as FST files have it in their heads and blocks: eight bytes, the highest first.
[[nodiscard]] std::string fst_number(std::uint64_t value);

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
  /// The same as binary digits, as many as the signal is wide: '0', '1', 'x' and 'z'.
  void change(std::size_t signal, const char* digits);

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
    bool has_text;     ///< the last change was digits
    std::string text;  ///< those
  };
  /// Adds the number of time steps since the last change, and the value, in `bytes` of `text`.
  void put(Variable& variable, const char* text, std::size_t bytes);
  [[nodiscard]] std::uint64_t steps_since_last(Variable& variable) const;


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

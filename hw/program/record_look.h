#pragma once

#include <algorithm>
#include <cstdint>

namespace systole::hw {

/// When commands are looked at for the records that they refer to (chains, entries of tables), and
/// when these are there: the cycle contract of rtl/core/systole_chain_fetch.sv, which the model's
/// program reader and the mapper's replay share with it.
///
/// The commands that have arrived are looked at in their order, one a cycle, ahead of dispatch.
/// What the core does not hold is read before the next command is looked at. A chain then leaves
/// its buffer, a word a cycle, while the next one may arrive in another.
class RecordLook {
 public:
  /// From the cycle with which a chain is there to its first word, and after its last one: the
  /// buffer is read, what matters of the chain goes into its slot.
  static constexpr std::uint64_t kRecordCycles = 3;
  static constexpr std::uint64_t kRecordWord = 8;  ///< bytes that leave the buffer in a cycle

  /// Looks at the next command, which has arrived with cycle `arrival`.
  void next(std::uint64_t arrival) { at_ = std::max(next_, arrival), next_ = at_ + 1; }
  /// The cycle in which it is looked at.
  [[nodiscard]] std::uint64_t at() const { return at_; }
  /// The cycle from which the command after it can be.
  [[nodiscard]] std::uint64_t end() const { return next_; }
  /// The cycle from which the port can read what it refers to, if that has a place from cycle
  /// `room` on.
  [[nodiscard]] std::uint64_t asks(std::uint64_t room = 0) const { return std::max(at_, room) + 1; }

  /// A chain of `bytes` bytes is there with cycle `cycle`. Returns when the command that it was
  /// read for can be dispatched.
  std::uint64_t take_chain(std::uint64_t cycle, std::uint64_t bytes) {
    const std::uint64_t leaves = std::max(cycle, left_);
    left_ = leaves + bytes / kRecordWord + kRecordCycles;
    look_again(leaves);
    return left_;
  }
  /// An entry of a table is, which the command takes along: see take_chain().
  std::uint64_t take_entry(std::uint64_t cycle) {
    look_again(cycle);
    return at_;
  }

 private:
  void look_again(std::uint64_t cycle) { at_ = cycle + 1, next_ = at_ + 1; }

  std::uint64_t at_ = 0, next_ = 0;
  std::uint64_t left_ = 0;  ///< cycle with which the last chain has left its buffer
};

}  // namespace systole::hw

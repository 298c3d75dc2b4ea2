#pragma once

#include <cstdint>
#include <optional>

#include "hw/postop/postop.h"
#include "hw/postop/result_cycles.h"
#include "hw/postop/row_flow.h"

namespace systole::hw {

/// When the tensor operands of a command are there, vector by vector in the order of its rows.
struct OperandTimes {
  const std::uint64_t* there = nullptr;  ///< cycles with which they are; null: there are none
  std::uint64_t known = 0;               ///< vectors of which that is known
  std::uint64_t not_before = 0;          ///< the others are not there before this cycle
};

/// The rows of a command of the store unit from the accumulator to the end of the stages, vector by
/// vector: the cycle contract of store_times() (hw/dma/store_schedule.h) for whoever says when each
/// vector of results is taken. Nothing in the stages moves while one is not.
///
/// next() and take() by turns. Where neither operands nor serial units are waited for, results come
/// at even intervals; else the stages move cycle by cycle.
class ResultFlow {
 public:
  ResultFlow() = default;
  /// A tile of `rows` x `cols`, at least one each. `stages`: what chain_cycles() says of it;
  /// `read`: cycles of an access to the accumulator; `whole`: all operands come before the first
  /// sums are read.
  ResultFlow(const ChainCycles& stages, const Chain& chain, std::uint64_t rows, std::uint64_t cols,
             std::uint32_t lanes, std::uint64_t read, bool whole);
  /// Its command starts in cycle `started` and takes `set_up` cycles before its first sums can be
  /// read. Once.
  void start(std::uint64_t started, std::uint64_t set_up);

  /// The cycle in which the next vector of results is at the end of the stages, if enough is known
  /// of its operands. There is one.
  [[nodiscard]] std::optional<std::uint64_t> next(const OperandTimes& operands);
  /// It is taken in this cycle, that of next() or a later one.
  void take(std::uint64_t cycle);
  /// The first cycle of which it is not known what happens in it, when next() says nothing.
  [[nodiscard]] std::uint64_t reached() const noexcept { return cycle_; }
  /// There is nothing in the stages that could leave them before the next operands come.
  [[nodiscard]] bool is_empty() const noexcept { return in_ == 0; }
  /// The cycle after that in which the last sums are read, as soon as it is known.
  [[nodiscard]] std::optional<std::uint64_t> sums_read() const;

 private:
  /// Whether a vector of sums can be read in cycle_; none: that is not known.
  [[nodiscard]] std::optional<bool> can_read(const OperandTimes& operands) const;

  bool even_ = true;
  std::uint64_t vectors_ = 1;  ///< of a row
  std::uint64_t left_ = 0;     ///< of the tile, that have not been taken
  std::uint64_t read_ = 0;     ///< cycle after that of the last sums, 0: not known
  // Even results.
  std::uint64_t gap_ = 0;       ///< cycles between the last one of a row and the first of the next
  std::uint64_t in_row_ = 0;    ///< of the row, that have been taken
  std::uint64_t due_ = 0;       ///< cycle of the next one
  std::uint64_t read_due_ = 0;  ///< read_, unless one that comes before is taken later
  // Others.
  StageFlow stages_;
  RowOrder reads_;
  std::uint64_t last_ = 0;  ///< vector of the tile
  std::uint64_t in_ = 0;    ///< vectors that have been read, less all those of what was taken
  std::uint32_t passes_ = 1;
  std::uint64_t cycle_ = 0;  ///< the next one
  std::uint64_t first_ = 0;  ///< in which sums can be read
  std::uint64_t taken_ = 0;  ///< in which the result at the end is
  bool whole_ = false, sums_there_ = false, is_taken_ = false;
};

}  // namespace systole::hw

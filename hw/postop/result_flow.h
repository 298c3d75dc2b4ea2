#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hw/array/sum_reads.h"
#include "hw/postop/postop.h"
#include "hw/postop/result_cycles.h"
#include "hw/postop/row_flow.h"

namespace systole::hw {

/// When there is what a command makes its results of.
struct InputTimes {
  /// Of its tensor operands, vector by vector in the order of its rows: cycles with which they are
  /// there; null: it has none.
  const std::uint64_t* there = nullptr;
  std::uint64_t known = 0;       ///< vectors of which that is known
  std::uint64_t not_before = 0;  ///< the others are not there before this cycle
  /// Who else uses the accumulator; null: nobody is in the way.
  const SumReads* sums = nullptr;
};

/// The rows of a command of the store unit from the accumulator to the end of the stages, vector by
/// vector: the cycle contract of store_times() (hw/dma/store_schedule.h) for whoever says when each
/// vector of results is taken. Nothing in the stages moves while one is not.
///
/// next() and take() by turns. Where neither operands nor serial units are waited for, and nobody
/// may be in the way at the accumulator, results come at even intervals; else the stages move cycle
/// by cycle.
class ResultFlow {
 public:
  ResultFlow() = default;
  struct Tile {
    std::uint64_t rows = 1, cols = 1;
    std::uint64_t at = 0, pitch = 0;  ///< sums of the accumulator
  };
  /// What a command makes its results of.
  enum class Inputs : std::uint8_t {
    kSums,   ///< sums, and tensor operands as they are there
    kWhole,  ///< all operands come before the first sums are read
    kRows,   ///< rows from memory in place of sums: InputTimes says when vectors are there
  };
  /// `stages`: what chain_cycles() says of the tile; `read`: cycles of an access to the
  /// accumulator, or to what holds the rows.
  ResultFlow(const ChainCycles& stages, const Chain& chain, const Tile& tile, std::uint32_t lanes,
             std::uint64_t read, Inputs inputs);
  /// Its command starts in cycle `started` and takes `set_up` cycles before its first sums can be
  /// read. Once.
  void start(std::uint64_t started, std::uint64_t set_up);

  /// The cycle in which the next vector of results is at the end of the stages, if enough is known
  /// of what it is made of. There is one.
  [[nodiscard]] std::optional<std::uint64_t> next(const InputTimes& inputs) {
    if (!even_ || (inputs.sums != nullptr && std::min(due_, last_read()) > free_until_)) {
      return find_next(inputs);
    }
    waits_for_sums_ = false;
    shares_sums_ = inputs.sums != nullptr;
    return due_;
  }
  /// It is taken in this cycle, that of next() or a later one.
  void take(std::uint64_t cycle) {
    --left_;
    if (even_) return take_even(cycle);
    is_taken_ = true;
    taken_ = cycle;
    in_ -= passes_;
  }
  /// The first cycle of which it is not known what happens in it, when next() says nothing.
  [[nodiscard]] std::uint64_t reached() const noexcept { return even_ ? free_until_ : cycle_; }
  /// That is for want of sums.
  [[nodiscard]] bool waits_for_sums() const noexcept { return waits_for_sums_; }
  /// There is nothing in the stages that could leave them before the next operands come.
  [[nodiscard]] bool is_empty() const noexcept { return in_ == 0; }
  /// The cycle after that in which the last sums are read, as soon as it is known.
  [[nodiscard]] std::optional<std::uint64_t> sums_read() const;
  /// Cycles in which others had the sums of a row that the stages had room for.
  [[nodiscard]] std::uint64_t refused(std::uint64_t row) const {
    return row < refused_.size() ? refused_[row] : 0;
  }

 private:
  /// next() where it may have to wait.
  [[nodiscard]] std::optional<std::uint64_t> find_next(const InputTimes& inputs);
  void take_even(std::uint64_t cycle) {
    if (cycle != due_) late_.emplace_back(tile_.rows * vectors_ - left_ - 1, cycle);
    // While it waits nothing is read.
    if (due_ < read_due_) read_due_ += cycle - due_;
    due_ = cycle + 1;
    if (++in_row_ < vectors_) return;
    in_row_ = 0;
    due_ += gap_;
  }
  /// Whether the operands of the next vector of sums are there in cycle_; none: that is not known.
  [[nodiscard]] std::optional<bool> has_operands(const InputTimes& inputs) const;
  /// Whether it can be read then.
  [[nodiscard]] std::optional<bool> can_read(const InputTimes& inputs);
  /// Whether it is known that no read waits in a cycle before this one.
  bool is_free(std::uint64_t cycle, const SumReads& sums, bool& is_met);
  /// The last sums of even results are read before this cycle, unless one of these is taken later.
  [[nodiscard]] std::uint64_t last_read() const { return read_ != 0 ? read_ : read_due_; }
  void make_stages();
  /// Leaves even intervals: the stages move from the start on as they have so far.
  void move_stages();

  Chain chain_;
  Tile tile_;
  std::uint32_t lanes_ = 1;
  std::uint64_t access_ = 1;  ///< cycles of one to the accumulator
  std::uint64_t started_ = 0;
  std::uint64_t free_until_ = 0;  ///< no read waits in a cycle before this one
  bool waits_for_sums_ = false;
  bool is_refused_ = false;             ///< others have the next sums in cycle_
  std::vector<std::uint64_t> refused_;  ///< by row, up to the last one that was
  bool shares_sums_ = true;             ///< others may be in the way
  bool even_ = true;
  std::uint64_t vectors_ = 1;  ///< of a row
  std::uint64_t left_ = 0;     ///< of the tile, that have not been taken
  std::uint64_t read_ = 0;     ///< cycle after that of the last sums, 0: not known
  // Even results.
  std::uint64_t gap_ = 0;       ///< cycles between the last one of a row and the first of the next
  std::uint64_t in_row_ = 0;    ///< of the row, that have been taken
  std::uint64_t due_ = 0;       ///< cycle of the next one
  std::uint64_t read_due_ = 0;  ///< read_, unless one that comes before is taken later
  /// Those that were taken later than they could be: number, cycle.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> late_;
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

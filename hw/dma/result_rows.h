#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/dma/store_queue.h"
#include "hw/dma/write_dma.h"
#include "hw/postop/result_flow.h"

namespace systole::hw {

/// Rows of results from the end of the stages to memory or the scratchpad, a piece a cycle: the
/// contract of hw::WritePort and of moves in store_times() (hw/dma/store_schedule.h). Either
/// - they leave the stages one after the other, and where they go takes the pieces, or
/// - something takes all of a row at once (leave()) and makes other rows of several (begin_made()).
class ResultRows {
 public:
  struct Shape {
    std::uint64_t cols = 1, lanes = 1;
    std::uint64_t bits = 8;   ///< of a result
    std::uint64_t piece = 1;  ///< bytes that can leave in a cycle
  };

  ResultRows() = default;
  /// `to`: where they go if they leave one after the other.
  ResultRows(ResultFlow flow, const Shape& shape, const RowWrite& to);

  /// The next row of the stages goes to something that takes all of it at once. The cycle after
  /// that in which its last vector leaves, not before `not_before`, if it is known; until then call
  /// it again.
  [[nodiscard]] std::optional<std::uint64_t> leave(const InputTimes& inputs,
                                                   std::uint64_t not_before);
  /// `bytes` bytes for `address` that are made of such rows: pieces can leave from cycle `from` on.
  /// The made row before has left.
  void begin_made(std::uint64_t address, std::uint64_t bytes, std::uint64_t from);

  /// The cycle in which the next piece can leave, if that is known. There is one.
  [[nodiscard]] std::optional<std::uint64_t> next(const InputTimes& inputs);
  [[nodiscard]] std::uint64_t piece_address() const noexcept { return at_; }
  [[nodiscard]] std::uint64_t piece_bytes() const {
    return std::min(shape_.piece, vector_ - taken_);
  }
  /// It leaves in this cycle. Returns whether it is the last one of its row.
  bool take(std::uint64_t cycle);

  /// The cycle from which the next request can issue, which has the next `bytes` bytes: the beats
  /// with them are in the queue. None: that is not known yet.
  [[nodiscard]] std::optional<std::uint64_t> request(std::uint64_t bytes, const StoreQueue& queue,
                                                     const InputTimes& inputs);
  /// Goes on as far as is known, until the next vector is at the end of the stages or longer.
  void go_on(const StoreQueue& queue, const InputTimes& inputs) {
    fill(0, queue, inputs);
    if (!flush_ && left_ != 0) (void)next(inputs);
  }
  /// It issues in that cycle, for `address`.
  void issued(std::uint64_t cycle, std::uint64_t address, std::uint64_t bytes, StoreQueue& queue);

  /// The first cycle in which a piece can leave after the one before.
  [[nodiscard]] std::uint64_t free() const noexcept { return free_; }
  /// By row of the stages of which it is known: the cycle after that in which it has left them.
  [[nodiscard]] const std::vector<std::uint64_t>& left() const noexcept { return rows_left_; }
  /// The cycle after that in which the last sums are read, as soon as it is known.
  [[nodiscard]] std::optional<std::uint64_t> sums_read() const { return flow_.sums_read(); }
  /// The first cycle of which it is not known what happens in it.
  [[nodiscard]] std::uint64_t reached() const noexcept { return flow_.reached(); }
  /// That is for want of sums: of others that use the accumulator then.
  [[nodiscard]] bool waits_for_sums() const noexcept { return flow_.waits_for_sums(); }
  /// Cycles in which others had the sums of a row that the stages had room for.
  [[nodiscard]] std::uint64_t refused(std::uint64_t row) const { return flow_.refused(row); }
  /// There is nothing in the stages that could leave them before the next operands come.
  [[nodiscard]] bool is_empty() const noexcept { return flow_.is_empty(); }

 private:
  /// Pieces go on into the queue as far as is known, and until beats with `wanted` bytes are there.
  void fill(std::uint64_t wanted, const StoreQueue& queue, const InputTimes& inputs);
  /// A piece, or what the one before had for a beat of its own, comes into the queue in a cycle.
  [[gnu::always_inline]] void push(std::uint64_t cycle, std::uint64_t beat_bytes);
  /// take().
  [[gnu::always_inline]] bool pass_piece(std::uint64_t cycle);
  void begin_row();
  /// The next vector of the row is at the end of the stages.
  void begin_vector();

  ResultFlow flow_;
  Shape shape_;
  RowWrite to_;
  std::uint64_t rows_ = 0;     ///< to begin, of those that leave one after the other
  std::uint64_t left_ = 0;     ///< columns of the row, 1 of one that has been made
  std::uint64_t vector_ = 0;   ///< bytes of the vector, all of a row that has been made
  std::uint64_t leaving_ = 0;  ///< columns of a row that something takes
  std::uint64_t taken_ = 0;    ///< of these, those that have left
  std::uint64_t at_ = 0;       ///< address of the next byte
  std::uint64_t from_ = 0;     ///< cycle from which pieces of what has been made can leave
  std::uint64_t free_ = 0;     ///< the first cycle in which a piece can leave after the one before
  bool is_made_ = false;
  bool flush_ = false;  ///< what the last piece of a row had for a beat of its own is to come
  /// Beats in the queue that requests to come have a part of.
  struct Beat {
    std::uint64_t cycle;
    std::uint64_t bytes;  ///< of all results, up to its last one
  };
  std::vector<Beat> beats_;         ///< a few
  std::uint64_t bytes_ = 0;         ///< of the results that have left
  std::uint64_t issued_bytes_ = 0;  ///< of those whose requests have issued
  std::vector<std::uint64_t> rows_left_;
};

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/round.h"
#include "hw/postop/result_flow.h"

namespace systole::hw {

/// The tensor operands of a command as requests bring them: when each vector is there. Bytes of a
/// request come a beat a cycle, the last one in the cycle in which it is done (local_writes() of
/// hw/dma/read_dma.h). Rows come in blocks, of each first those of one tensor, then of the next.
/// Vectors are used in the order of their rows, and none before all of the tensors before the last.
class OperandArrivals {
 public:
  OperandArrivals() = default;
  /// Of a tile of `rows` x `cols`; `beat`: bytes.
  OperandArrivals(std::uint64_t rows, std::uint64_t cols, std::uint64_t lanes, std::uint64_t beat)
      : cols_(cols), lanes_(lanes), beat_(beat), there_(rows * ceil_div(cols, lanes), 0) {}

  /// Rows of a tensor whose elements have `element` bytes follow; `is_last`: it is the last tensor.
  void begin_rows(std::uint64_t element, bool is_last) {
    row_bytes_ = cols_ * element;
    vector_bytes_ = lanes_ * element;
    is_last_ = is_last;
    at_ = 0;
    vector_end_ = std::min(vector_bytes_, row_bytes_);
    last_ = std::max(last_, floor_);
  }
  /// The next `bytes` bytes, of a row, are there in cycle `done`. They are at `address` of memory.
  void arrive(std::uint64_t address, std::uint64_t bytes, std::uint64_t done) {
    if (!is_last_) {
      floor_ = std::max(floor_, done);
      return;
    }
    const std::uint64_t beats = blocks_touched(address, bytes, beat_), end = at_ + bytes;
    for (std::uint64_t beat = 1; beat <= beats; ++beat) {
      last_ = std::max(last_, done - (beats - beat));
      at_ = std::min(end, at_ + beat_ - address % beat_);
      address += beat_ - address % beat_;
      while (vector_end_ <= at_ && at_ != 0) next_vector();
    }
  }

  /// Vectors of which it is known when they are there.
  [[nodiscard]] std::uint64_t known() const noexcept { return known_; }
  void tell(InputTimes& times) const {
    times.there = there_.data();
    times.known = known_;
  }

 private:
  void next_vector() {
    there_[known_++] = last_;
    if (vector_end_ == row_bytes_) {
      at_ = 0;
      vector_end_ = std::min(vector_bytes_, row_bytes_);
    } else {
      vector_end_ = std::min(vector_end_ + vector_bytes_, row_bytes_);
    }
  }

  std::uint64_t cols_ = 1, lanes_ = 1, beat_ = 1;
  std::vector<std::uint64_t> there_;  ///< by vector
  std::uint64_t known_ = 0;
  std::uint64_t row_bytes_ = 0, vector_bytes_ = 0;  ///< of the tensor
  std::uint64_t at_ = 0, vector_end_ = 0;           ///< bytes of the row, up to the end of a vector
  std::uint64_t floor_ = 0;  ///< cycle with which the tensors before the last are there so far
  std::uint64_t last_ = 0;   ///< of the last vector
  bool is_last_ = true;
};

}  // namespace systole::hw

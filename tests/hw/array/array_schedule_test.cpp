/// The array's cycle contract on arrays that are not square, against a schedule of every processing
/// element: each fold enters as early as all elements allow.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "hw/array/array.h"

namespace systole::hw {
namespace {

/// Element (r, c) works on what enters in cycle t in cycle t + r + c. It has a register more than
/// it computes with: for the next weight, or for a complete sum that shifts out. Cycle 0 is that of
/// the product's first beat.
class ScheduledArray {
 public:
  ScheduledArray(const Machine::Array& array, std::uint64_t streamed, bool preloaded)
      : rows_(array.rows),
        cols_(array.cols),
        streamed_(static_cast<std::int64_t>(streamed)),
        weights_(array.dataflow == Dataflow::kWeightStationary),
        alone_(array.overlap == ArrayOverlap::kNone),
        drains_(array.overlap != ArrayOverlap::kFull),
        elements_(std::size_t{array.rows} * array.cols) {
    if (weights_ && !alone_) shift_in(preloaded ? -rows_ : 0);
  }

  [[nodiscard]] ArrayCycles run(std::uint64_t folds) {
    for (std::uint64_t fold = 0; fold < folds; ++fold) {
      wait_for_room();
      if (weights_ && alone_) shift_in(now_);
      wait_for_weights();
      stream();
    }
    // The next command begins with a row, or with its weights if they cannot come in earlier.
    wait_for_room();
    if (!alone_) wait_for_weights();
    cycles_.folds = folds;
    cycles_.interval = static_cast<std::uint64_t>(now_);
    cycles_.latency = static_cast<std::uint64_t>(handed_over_);
    return cycles_;
  }

 private:
  static constexpr std::int64_t kLongAgo = std::numeric_limits<std::int32_t>::min();

  struct Element {
    std::int64_t weight_there = 0;        ///< cycle from which it can multiply by the next weight
    std::int64_t weight_free = kLongAgo;  ///< and from which the one after that may come in
    std::int64_t sum_free = 0;            ///< and from which a complete sum has a place
    std::int64_t sum_there = 0;           ///< cycle from which the fold's sum is complete
  };
  /// Visits all elements with their distance from the corner at which beats enter.
  template <typename Visit>
  void for_all(Visit visit) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < cols_; ++c) visit(at(r, c), r + c, r, c);
    }
  }
  [[nodiscard]] Element& at(std::int64_t r, std::int64_t c) {
    return elements_[static_cast<std::size_t>(r * cols_ + c)];
  }

  void wait_until(std::int64_t cycle, std::uint64_t& cause) {
    cause += static_cast<std::uint64_t>(std::max(cycle, now_) - now_);
    now_ = std::max(cycle, now_);
  }

  /// Weights enter at the top of every column, a row a cycle, and move down a row a cycle, until
  /// the first of them is at the bottom. Column c is c cycles late.
  void shift_in(std::int64_t begin) {
    for_all([&](const Element& element, std::int64_t distance, std::int64_t, std::int64_t) {
      begin = std::max(begin, element.weight_free - distance);
    });
    for_all([&](Element& element, std::int64_t, std::int64_t, std::int64_t c) {
      element.weight_there = begin + c + rows_;
    });
  }

  void wait_for_room() {
    if (drains_) wait_until(drained_, cycles_.drain);
    std::int64_t room = now_;
    for_all([&](const Element& element, std::int64_t distance, std::int64_t, std::int64_t) {
      room = std::max(room, element.sum_free - distance - streamed_);
    });
    wait_until(room, cycles_.drain);
  }

  void wait_for_weights() {
    std::int64_t there = now_;
    for_all([&](const Element& element, std::int64_t distance, std::int64_t, std::int64_t) {
      there = std::max(there, element.weight_there - distance);
    });
    wait_until(there, cycles_.preload);
  }

  void stream() {
    const std::int64_t begin = now_;
    std::int64_t complete = 0;
    for_all([&](Element& element, std::int64_t distance, std::int64_t, std::int64_t) {
      element.weight_free = begin + distance;
      element.sum_there = begin + distance + streamed_;
      complete = std::max(complete, element.sum_there);
    });
    now_ += streamed_;
    cycles_.stream += static_cast<std::uint64_t>(streamed_);
    handed_over_ = drained_ = complete;
    if (weights_) {
      if (!alone_) shift_in(begin);
      return;
    }
    // A column moves down a row a cycle once its lowest sum, the last, is complete. All that comes
    // from above has to pass before the next sum has a place.
    for_all([&](Element& element, std::int64_t, std::int64_t r, std::int64_t c) {
      element.sum_free = at(rows_ - 1, c).sum_there + r + 1;
    });
    handed_over_ = complete + rows_;
    if (alone_) drained_ = handed_over_;
  }

  const std::int64_t rows_, cols_, streamed_;
  const bool weights_, alone_, drains_;
  std::vector<Element> elements_;
  std::int64_t now_ = 0, drained_ = 0, handed_over_ = 0;
  ArrayCycles cycles_;
};

/// What a product asks of an array, counted fold by fold and row by row.
struct CountedFolds {
  std::uint64_t folds = 0, streamed = 0;
  ArrayReads reads;
};

CountedFolds count_folds(const Machine::Array& array, std::uint64_t m, std::uint64_t n,
                         std::uint64_t k) {
  const bool weights = array.dataflow == Dataflow::kWeightStationary;
  CountedFolds counted;
  counted.streamed = weights ? m : k;
  // The array's height holds a piece of k (weights) or of m (sums); its width a piece of n.
  const std::uint64_t tall = weights ? k : m;
  for (std::uint64_t col = 0; col < n; col += array.cols) {
    for (std::uint64_t row = 0; row < tall; row += array.rows) {
      ++counted.folds;
      for (std::uint64_t i = 0; i < counted.streamed; ++i) {
        ++counted.reads.a;
        if (!weights) ++counted.reads.b;
      }
      if (!weights) continue;
      for (std::uint64_t i = row; i < std::min<std::uint64_t>(row + array.rows, k); ++i) {
        ++counted.reads.b;
      }
    }
  }
  return counted;
}

struct ArraySize {
  std::uint32_t rows, cols;
};

class ArraySchedule : public ::testing::TestWithParam<ArraySize> {
 protected:
  /// Every dataflow, overlap and a few products, some of which end within a fold.
  template <typename Visit>
  void for_each_product(Visit visit) const {
    Machine::Array array;
    array.rows = GetParam().rows;
    array.cols = GetParam().cols;
    for (const Dataflow dataflow : {Dataflow::kWeightStationary, Dataflow::kOutputStationary}) {
      for (const ArrayOverlap overlap :
           {ArrayOverlap::kNone, ArrayOverlap::kPreload, ArrayOverlap::kFull}) {
        array.dataflow = dataflow;
        array.overlap = overlap;
        for (const std::uint64_t m : {1U, 3U, 8U, 21U, 40U}) {
          for (const std::uint64_t n : {1U, 8U, 19U, 37U}) {
            for (const std::uint64_t k : {1U, 5U, 16U, 35U}) {
              SCOPED_TRACE(::testing::Message()
                           << array.rows << " x " << array.cols << ", dataflow "
                           << static_cast<int>(dataflow) << ", overlap "
                           << static_cast<int>(overlap) << ", " << m << " x " << n << " x " << k);
              visit(array, m, n, k);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
};

TEST_P(ArraySchedule, IsTheContract) {
  for_each_product(
      [](const Machine::Array& array, std::uint64_t m, std::uint64_t n, std::uint64_t k) {
        const CountedFolds counted = count_folds(array, m, n, k);
        for (const bool preloaded : {false, true}) {
          const ArrayCycles cycles = array_cycles(array, m, n, k, preloaded);
          const ArrayCycles expected =
              ScheduledArray(array, counted.streamed, preloaded).run(counted.folds);
          EXPECT_EQ(cycles.folds, expected.folds);
          EXPECT_EQ(cycles.interval, expected.interval);
          EXPECT_EQ(cycles.latency, expected.latency);
          EXPECT_EQ(cycles.stream, expected.stream);
          EXPECT_EQ(cycles.preload, expected.preload);
          EXPECT_EQ(cycles.drain, expected.drain);
        }
      });
}

TEST_P(ArraySchedule, ReadsTheRowsThatThereAre) {
  for_each_product(
      [](const Machine::Array& array, std::uint64_t m, std::uint64_t n, std::uint64_t k) {
        const ArrayReads reads = array_reads(array, m, n, k);
        const ArrayReads expected = count_folds(array, m, n, k).reads;
        EXPECT_EQ(reads.a, expected.a);
        EXPECT_EQ(reads.b, expected.b);
      });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ArraySchedule,
                         ::testing::Values(ArraySize{8, 4}, ArraySize{4, 8}, ArraySize{16, 2},
                                           ArraySize{2, 16}, ArraySize{1, 8}, ArraySize{8, 1},
                                           ArraySize{8, 8}),
                         [](const auto& size) {
                           return std::to_string(size.param.rows) + "x" +
                                  std::to_string(size.param.cols);
                         });

}  // namespace
}  // namespace systole::hw

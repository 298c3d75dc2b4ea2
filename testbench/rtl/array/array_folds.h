#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "hw/array/array.h"
#include "hw/kernel/gemm.h"

namespace systole::testbench {

/// Position in a stream of folds of `length` beats each.
struct FoldPosition {
  std::size_t fold = 0;
  std::size_t beat = 0;

  void step(std::size_t length) {
    if (++beat == length) {
      beat = 0;
      ++fold;
    }
  }
};

/// Throws std::invalid_argument if a pitch is shorter than its row.
inline void check_pitches(const hw::GemmArgs& args) {
  const std::size_t b_row = args.b_transposed ? hw::array_steps(args.k, args.b_int4) : args.n;
  if ((args.a != nullptr && args.lda < args.k) || (args.b != nullptr && args.ldb < b_row) ||
      (args.c != nullptr && args.ldc < args.n)) {
    throw std::invalid_argument("ArrayFolds: a pitch is shorter than its row");
  }
}

/// A product without folds leaves the array alone, but not C.
inline void clear_c(const hw::GemmArgs& args) {
  if (args.c == nullptr || args.accumulate || args.n == 0) return;
  for (std::size_t row = 0; row < args.m; ++row) {
    std::memset(args.c + row * args.ldc, 0, args.n * sizeof(std::int32_t));
  }
}

/// The folds of one product on a Dim x Dim weight-stationary array, as beats of its streams: column
/// tiles outside, tiles of k inside, ragged tiles padded with zeros. Pairs of int4 weights are
/// steps along k, of two activations each.
template <std::size_t Dim>
class ArrayFolds {
 public:
  /// Throws std::invalid_argument if a pitch is shorter than its row.
  explicit ArrayFolds(const hw::GemmArgs& args)
      : args_(args), steps_(hw::array_steps(args.k, args.b_int4)) {
    check_pitches(args);
    if (args.m == 0 || args.n == 0) return;
    k_tiles_ = (steps_ + Dim - 1) / Dim;
    count_ = k_tiles_ * ((args.n + Dim - 1) / Dim);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t rows() const { return args_.m; }
  [[nodiscard]] std::size_t col(std::size_t fold) const { return fold / k_tiles_ * Dim; }
  [[nodiscard]] std::size_t cols(std::size_t fold) const {
    return std::min(Dim, args_.n - col(fold));
  }
  [[nodiscard]] bool first_of_k(std::size_t fold) const { return fold % k_tiles_ == 0; }

  /// Beat `beat` of a fold's weights: the rows of its tile from the bottom up. Fold count() is a
  /// tile of zeros.
  void weights(std::size_t fold, std::size_t beat, std::int8_t* lanes) const {
    std::memset(lanes, 0, Dim);
    const std::size_t row = fold < count_ ? k_begin(fold) + Dim - 1 - beat : steps_;
    if (row >= steps_ || args_.b == nullptr) return;
    const std::size_t begin = col(fold);
    if (!args_.b_transposed) {
      std::memcpy(lanes, args_.b + row * args_.ldb + begin, cols(fold));
      return;
    }
    for (std::size_t c = 0; c < cols(fold); ++c) lanes[c] = args_.b[(begin + c) * args_.ldb + row];
  }

  /// Row `row` of a fold's activations; of pairs, those of the weights in the low halves.
  void activations(std::size_t fold, std::size_t row, std::uint8_t* lanes) const {
    if (args_.b_int4) return activations_of(fold, row, 0, lanes);
    const std::size_t begin = k_begin(fold);
    const std::size_t used = args_.a == nullptr ? 0 : std::min(Dim, args_.k - begin);
    const auto* const a = static_cast<const std::uint8_t*>(args_.a);
    if (used == Dim) {
      std::memcpy(lanes, a + row * args_.lda + begin, Dim);
      return;
    }
    std::memset(lanes, 0, Dim);
    if (used != 0) std::memcpy(lanes, a + row * args_.lda + begin, used);
  }

  /// Those of the weights in the high halves; without pairs nothing reads them.
  void odd_activations(std::size_t fold, std::size_t row, std::uint8_t* lanes) const {
    activations(fold, row, lanes);
    if (args_.b_int4) return activations_of(fold, row, 1, lanes);
    for (std::size_t r = 0; r < Dim; ++r) lanes[r] = static_cast<std::uint8_t>(~lanes[r]);
  }

  /// The sums that row `row` of a fold should give.
  void sums(std::size_t fold, std::size_t row, std::int32_t* lanes) const {
    std::uint8_t a[Dim], odd[Dim];
    activations(fold, row, a);
    odd_activations(fold, row, odd);
    const auto value = [&](std::uint8_t code) -> std::int32_t {
      return args_.a_unsigned ? code : static_cast<std::int8_t>(code);
    };
    std::fill_n(lanes, Dim, 0);
    for (std::size_t beat = 0; beat < Dim; ++beat) {
      std::int8_t w[Dim];
      weights(fold, beat, w);
      const std::size_t r = Dim - 1 - beat;
      for (std::size_t c = 0; c < Dim; ++c) {
        if (!args_.b_int4) {
          lanes[c] += value(a[r]) * w[c];
          continue;
        }
        std::int8_t pair[hw::kInt4Pair];
        hw::expand_int4(reinterpret_cast<const std::uint8_t*>(&w[c]), 1, 1, hw::kInt4Pair, true,
                        pair, hw::kInt4Pair);
        lanes[c] += value(a[r]) * pair[0] + value(odd[r]) * pair[1];
      }
    }
  }

 private:
  /// The first or the second of each pair.
  void activations_of(std::size_t fold, std::size_t row, std::size_t which,
                      std::uint8_t* lanes) const {
    const auto* const a = static_cast<const std::uint8_t*>(args_.a);
    for (std::size_t r = 0; r < Dim; ++r) {
      const std::size_t p = hw::kInt4Pair * (k_begin(fold) + r) + which;
      lanes[r] = a != nullptr && p < args_.k ? a[row * args_.lda + p] : 0;
    }
  }
  [[nodiscard]] std::size_t k_begin(std::size_t fold) const { return fold % k_tiles_ * Dim; }

  hw::GemmArgs args_;
  std::size_t steps_;  ///< along k
  std::size_t k_tiles_ = 0;
  std::size_t count_ = 0;
};

}  // namespace systole::testbench

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
  const std::size_t a_row = hw::stored_bytes(args.k, args.a_int4);
  const std::size_t depth = hw::stored_bytes(args.k, args.b_int4);
  const std::size_t b_row = args.b_transposed ? depth : args.n;
  if ((args.a != nullptr && args.lda < a_row) || (args.b != nullptr && args.ldb < b_row) ||
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
/// steps along k, of two activations each; of int4 activations, two pairs of either are a step.
template <std::size_t Dim>
class ArrayFolds {
 public:
  /// Throws std::invalid_argument if a pitch is shorter than its row.
  explicit ArrayFolds(const hw::GemmArgs& args)
      : args_(args), steps_(hw::array_steps(args.k, {args.a_int4, args.b_int4})) {
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
    weights_of(fold, beat, 0, lanes);
  }
  /// The second pairs of a step; without int4 activations nothing reads them.
  void second_weights(std::size_t fold, std::size_t beat, std::int8_t* lanes) const {
    if (args_.a_int4) return weights_of(fold, beat, 1, lanes);
    weights(fold, beat, lanes);
    for (std::size_t c = 0; c < Dim; ++c) lanes[c] = static_cast<std::int8_t>(~lanes[c]);
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
      std::int8_t w[Dim], second[Dim];
      weights(fold, beat, w);
      second_weights(fold, beat, second);
      const std::size_t r = Dim - 1 - beat;
      for (std::size_t c = 0; c < Dim; ++c) {
        if (args_.a_int4) {
          lanes[c] += pair_of(a[r], 0) * pair_of(w[c], 0) + pair_of(a[r], 1) * pair_of(w[c], 1) +
                      pair_of(odd[r], 0) * pair_of(second[c], 0) +
                      pair_of(odd[r], 1) * pair_of(second[c], 1);
        } else if (args_.b_int4) {
          lanes[c] += value(a[r]) * pair_of(w[c], 0) + value(odd[r]) * pair_of(w[c], 1);
        } else {
          lanes[c] += value(a[r]) * w[c];
        }
      }
    }
  }

 private:
  /// The first or the second int4 of a byte.
  template <typename Byte>
  [[nodiscard]] static std::int32_t pair_of(Byte byte, std::size_t which) {
    std::int8_t pair[hw::kInt4Pair];
    hw::expand_int4(reinterpret_cast<const std::uint8_t*>(&byte), 1, 1, hw::kInt4Pair, true, pair,
                    hw::kInt4Pair);
    return pair[which];
  }
  /// The first or the second of each step's two bytes of a row, or its only byte.
  void weights_of(std::size_t fold, std::size_t beat, std::size_t which, std::int8_t* lanes) const {
    std::memset(lanes, 0, Dim);
    const std::size_t step = fold < count_ ? k_begin(fold) + Dim - 1 - beat : steps_;
    const std::size_t row = args_.a_int4 ? hw::kInt4Pair * step + which : step;
    const std::size_t rows = hw::stored_bytes(args_.k, args_.b_int4);
    if (step >= steps_ || row >= rows || args_.b == nullptr) return;
    const std::size_t begin = col(fold);
    if (!args_.b_transposed) {
      std::memcpy(lanes, args_.b + row * args_.ldb + begin, cols(fold));
      return;
    }
    for (std::size_t c = 0; c < cols(fold); ++c) lanes[c] = args_.b[(begin + c) * args_.ldb + row];
  }
  /// The first or the second of each step's two bytes.
  void activations_of(std::size_t fold, std::size_t row, std::size_t which,
                      std::uint8_t* lanes) const {
    const auto* const a = static_cast<const std::uint8_t*>(args_.a);
    const std::size_t bytes = hw::stored_bytes(args_.k, args_.a_int4);
    for (std::size_t r = 0; r < Dim; ++r) {
      const std::size_t p = hw::kInt4Pair * (k_begin(fold) + r) + which;
      lanes[r] = a != nullptr && p < bytes ? a[row * args_.lda + p] : 0;
    }
  }
  [[nodiscard]] std::size_t k_begin(std::size_t fold) const { return fold % k_tiles_ * Dim; }

  hw::GemmArgs args_;
  std::size_t steps_;  ///< along k
  std::size_t k_tiles_ = 0;
  std::size_t count_ = 0;
};

}  // namespace systole::testbench

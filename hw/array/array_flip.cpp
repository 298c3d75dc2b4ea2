#include "hw/array/array_flip.h"

#include <algorithm>

namespace systole::hw {
namespace {

/// Elements of the operands of a product as numbers.
class Operands {
 public:
  explicit Operands(const GemmArgs& args) : args_(args) {}

  [[nodiscard]] std::int32_t a(std::size_t row, std::size_t k) const {
    const std::size_t at = row * args_.lda + k;
    return args_.a_unsigned ? static_cast<const std::uint8_t*>(args_.a)[at]
                            : static_cast<const std::int8_t*>(args_.a)[at];
  }
  [[nodiscard]] std::int32_t b(std::size_t k, std::size_t col) const {
    return args_.b[args_.b_transposed ? col * args_.ldb + k : k * args_.ldb + col];
  }
  void add(std::size_t row, std::size_t col, std::int32_t value) const {
    std::int32_t& sum = args_.c[row * args_.ldc + col];
    sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                    static_cast<std::uint32_t>(value));
  }

 private:
  const GemmArgs& args_;
};

/// The change of a number of `bits` bits in two's complement when one of them flips.
std::int32_t change_of(std::int32_t value, std::uint32_t bit, std::uint32_t bits) {
  const std::uint32_t weight = std::uint32_t{1} << bit;
  const bool was_set = (static_cast<std::uint32_t>(value) & weight) != 0;
  const bool negative = bit + 1 == bits;  // the weight of the sign
  return static_cast<std::int32_t>(was_set == negative ? weight : 0U - weight);
}

}  // namespace

std::optional<ArrayFlip> array_flip_at(const ArraySchedule& schedule, std::uint64_t m,
                                       std::int64_t cycle, ArrayFlip flip) {
  const std::int64_t way = std::int64_t{flip.row} + flip.col;
  const bool weight = flip.which == ArrayRegister::kWeight;
  // Cycle at which what the register holds entered, or would have.
  const std::int64_t entered = cycle - way - (weight ? 0 : 1);
  const std::int64_t since = entered - schedule.begin(0);
  if (since < 0) return std::nullopt;
  const auto interval = static_cast<std::int64_t>(schedule.interval());
  flip.fold = static_cast<std::uint64_t>(
      std::min(since / interval, static_cast<std::int64_t>(schedule.folds()) - 1));
  if (weight && flip.fold + 1 < schedule.folds() &&
      entered >= schedule.weights_in_use(flip.fold + 1)) {
    ++flip.fold;  // in use before its first row enters
  }
  flip.streamed =
      static_cast<std::uint64_t>(std::max<std::int64_t>(entered - schedule.begin(flip.fold), 0));
  if (flip.streamed >= m) return std::nullopt;
  return flip;
}

void apply_array_flip(const GemmArgs& args, const Machine::Array& array,
                      const ArraySchedule& schedule, const ArrayFlip& flip) {
  const Operands operands(args);
  const std::size_t k_begin = flip.fold % schedule.inner() * array.rows;
  const std::size_t col_begin = flip.fold / schedule.inner() * array.cols;
  const std::size_t k = k_begin + flip.row, col = col_begin + flip.col;
  const std::size_t col_end = std::min<std::size_t>(col_begin + array.cols, args.n);
  const std::uint32_t bits = bits_of(flip.which);
  switch (flip.which) {
    case ArrayRegister::kWeight: {
      // Padding is multiplied by zeros.
      if (k >= args.k || col >= args.n) return;
      const std::int32_t change = change_of(operands.b(k, col), flip.bit, bits);
      for (std::size_t row = flip.streamed; row < args.m; ++row) {
        operands.add(row, col, operands.a(row, k) * change);
      }
      return;
    }
    case ArrayRegister::kActivation: {
      if (k >= args.k) return;
      const std::int32_t change = change_of(operands.a(flip.streamed, k), flip.bit, bits);
      for (std::size_t right = col + 1; right < col_end; ++right) {
        operands.add(flip.streamed, right, change * operands.b(k, right));
      }
      return;
    }
    case ArrayRegister::kSum: {
      if (col >= args.n) return;
      std::int32_t sum = 0;
      for (std::size_t above = k_begin; above <= std::min(k, args.k - 1); ++above) {
        sum += operands.a(flip.streamed, above) * operands.b(above, col);
      }
      operands.add(flip.streamed, col, change_of(sum, flip.bit, bits));
      return;
    }
  }
}

}  // namespace systole::hw

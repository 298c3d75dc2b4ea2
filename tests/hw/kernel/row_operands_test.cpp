#include "tests/hw/kernel/row_kernel_targets.h"

namespace systole::hw::row {
namespace {

using test::pick;

constexpr std::int32_t kLowest = -2147483647 - 1;
constexpr std::int32_t kHighest = 2147483647;
constexpr int kRounds = 2000;

class RowOperands : public test::RowKernelTest {
 protected:
  using Kernel = std::function<void(std::int32_t* x, const std::int32_t* y, std::size_t n)>;

  /// Both kernels with the same random operand.
  void expect_same_with_operand(const Kernel& vectors, const Kernel& plain) {
    const std::vector<std::int32_t> y = words(80);
    expect_same([&](std::int32_t* x, std::size_t n) { vectors(x, y.data(), n); },
                [&](std::int32_t* x, std::size_t n) { plain(x, y.data(), n); },
                static_cast<int>(pick(random_, 0, 31)));
  }
};

TEST_P(RowOperands, AddLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    expect_same_with_operand([](auto* x, auto* y, std::size_t n) { add(x, y, n, 1); },
                             [](auto* x, auto* y, std::size_t n) { plain::add_rows(x, y, n, 1); });
  }
}

TEST_P(RowOperands, SubtractLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    expect_same_with_operand(
        [](auto* x, auto* y, std::size_t n) { subtract(x, y, n, 1); },
        [](auto* x, auto* y, std::size_t n) { plain::subtract_rows(x, y, n, 1); });
  }
}

TEST_P(RowOperands, MultiplyLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const auto shift = static_cast<unsigned>(pick(random_, 0, 63));
    const Rounding r = rounding();
    const Clamp bounds = limits();
    expect_same_with_operand(
        [&](auto* x, auto* y, std::size_t n) { multiply(x, y, n, 1, shift, r, bounds); },
        [&](auto* x, auto* y, std::size_t n) {
          plain::multiply_rows(x, y, n, 1, shift, r, bounds);
        });
  }
}

TEST_P(RowOperands, MultiplyExtremesByEveryShift) {
  const std::vector<std::int32_t> operand = {kLowest, kHighest, kLowest + 1, -1, 0, 1, 3};
  for (const Rounding r : {Rounding::kHalfUp, Rounding::kHalfEven, Rounding::kFloor}) {
    for (unsigned shift = 0; shift <= 63; ++shift) {
      for (const std::int32_t value : operand) {
        std::vector<std::int32_t> x(operand.size(), value);
        multiply(x.data(), operand.data(), x.size(), 1, shift, r, {kLowest, kHighest});
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::int64_t product = std::int64_t{value} * operand[i];
          ASSERT_EQ(x[i], plain::saturate32(shift_right(product, shift, r)))
              << value << " * " << operand[i] << " >> " << shift;
        }
      }
    }
  }
}

TEST_P(RowOperands, SelectByTheMask) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    std::vector<std::int32_t> mask = words(80);
    for (std::int32_t& value : mask) value = pick(random_, 0, 1) == 0 ? 0 : value;
    const auto fill = static_cast<std::int32_t>(pick(random_, kLowest, kHighest));
    expect_same([&](std::int32_t* x, std::size_t n) { select(x, mask.data(), n, 1, fill); },
                [&](std::int32_t* x, std::size_t n) {
                  for (std::size_t j = 0; j < n; ++j) x[j] = mask[j] != 0 ? x[j] : fill;
                });
  }
}

TEST_P(RowOperands, RopeLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const auto shift = static_cast<unsigned>(pick(random_, 0, 63));
    const Rounding r = rounding();
    const Clamp bounds = limits();
    const auto even = [](std::size_t n) { return n / 2 * 2; };
    expect_same_with_operand(
        [&](auto* x, auto* y, std::size_t n) { rope(x, y, even(n), shift, r, bounds); },
        [&](auto* x, auto* y, std::size_t n) { plain::rope_row(x, y, even(n), shift, r, bounds); });
  }
}

TEST_P(RowOperands, OneOperandRowServesManyRows) {
  constexpr std::size_t kRows = 3;
  constexpr std::size_t kCols = 21;
  const std::vector<std::int32_t> y = words(kCols);
  const std::vector<std::int32_t> x = words(kRows * kCols);
  const auto expect_as_row_by_row = [&](const auto& kernel) {
    std::vector<std::int32_t> together = x;
    kernel(together.data(), kRows);
    std::vector<std::int32_t> apart = x;
    for (std::size_t r = 0; r < kRows; ++r) kernel(apart.data() + r * kCols, 1);
    EXPECT_EQ(together, apart);
    EXPECT_NE(together, x);
  };
  const Clamp bounds{kLowest, kHighest};
  expect_as_row_by_row([&](auto* at, std::size_t n) { add(at, y.data(), kCols, n); });
  expect_as_row_by_row([&](auto* at, std::size_t n) { subtract(at, y.data(), kCols, n); });
  expect_as_row_by_row([&](auto* at, std::size_t n) {
    multiply(at, y.data(), kCols, n, 31, Rounding::kHalfUp, bounds);
  });
  const std::vector<std::int32_t> mask = {1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1,
                                          0, 0, 0, 0, 0, 1, 1, 1, 1, 0};
  expect_as_row_by_row([&](auto* at, std::size_t n) { select(at, mask.data(), kCols, n, 7); });
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, RowOperands, test::every_target(),
                         systole::test::target_name);

}  // namespace
}  // namespace systole::hw::row

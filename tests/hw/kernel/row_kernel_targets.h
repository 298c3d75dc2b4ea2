#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "hw/kernel/row_kernels.h"
#include "hw/kernel/row_plain.h"
#include "tests/hw/postop/random_chain.h"
#include "tests/support/highway_target.h"

/// The row kernels of every instruction set against the plain loops. A file that includes this
/// includes it first, and by itself: it tells Highway's headers which instruction sets there are.
namespace systole::hw::test {

/// Every vector instruction set that this processor has, one at a time.
class RowKernelTest : public systole::test::HighwayTarget {
 protected:
  using Kernel = std::function<void(std::int32_t* x, std::size_t n)>;

  /// Both kernels on the same elements, at every length around whole vectors.
  void expect_same(const Kernel& vectors, const Kernel& plain, int narrow = 0) {
    const auto n = static_cast<std::size_t>(pick(random_, 1, 80));
    constexpr std::int32_t kGuard = 0x5a5a5a5a;
    std::vector<std::int32_t> x(n + 1);
    for (std::int32_t& value : x) value = any_int32(random_) >> narrow;
    x[n] = kGuard;
    std::vector<std::int32_t> expected = x;
    vectors(x.data(), n);
    plain(expected.data(), n);
    ASSERT_EQ(x, expected);
  }

  std::vector<std::int32_t> words(std::size_t n) {
    std::vector<std::int32_t> result(n);
    for (std::int32_t& value : result) value = any_int32(random_);
    return result;
  }

  row::Clamp limits() {
    const std::int32_t a = any_int32(random_);
    const std::int32_t b = any_int32(random_);
    return {std::min(a, b), std::max(a, b)};
  }

  Dyadic factor() {
    return {std::max(any_int32(random_), -2147483647),
            static_cast<std::int8_t>(pick(random_, 0, 63))};
  }

  Rounding rounding() { return static_cast<Rounding>(pick(random_, 0, 2)); }

  Random random_{17};
};

inline auto every_target() { return testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

}  // namespace systole::hw::test

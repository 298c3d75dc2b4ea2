#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/kernel/gemm.h"

/// Products of int4 weights, against sums of integers that know nothing of their expansion.
namespace systole::hw {
namespace {

/// The weight of row `p` and column `j` of B.
int weight_of(const GemmArgs& args, std::size_t p, std::size_t j) {
  const std::size_t at = args.b_transposed ? j * args.ldb + p / 2 : p / 2 * args.ldb + j;
  const int byte = static_cast<std::uint8_t>(args.b[at]);
  const int half = p % 2 == 0 ? byte % 16 : byte / 16;
  return half < 8 ? half : half - 16;
}

TEST(GemmInt4, EqualsSumsOfIntegersOnEveryBackend) {
  std::mt19937 random(9);
  for (int i = 0; i < 300; ++i) {
    GemmArgs args;
    args.m = 1 + random() % 20;
    args.n = 1 + random() % 40;
    args.k = 1 + random() % 90;
    args.a_unsigned = random() % 2 != 0;
    args.b_transposed = random() % 2 != 0;
    args.b_int4 = true;
    args.accumulate = random() % 2 != 0;
    const std::size_t pairs = (args.k + 1) / 2;
    args.lda = args.k + random() % 3;
    args.ldb = (args.b_transposed ? pairs : args.n) + random() % 3;
    args.ldc = args.n + random() % 3;
    std::vector<std::uint8_t> a(args.m * args.lda);
    std::vector<std::int8_t> b((args.b_transposed ? args.n : pairs) * args.ldb);
    std::vector<std::int32_t> before(args.m * args.ldc);
    for (auto& value : a) value = static_cast<std::uint8_t>(random());
    for (auto& value : b) value = static_cast<std::int8_t>(random());
    for (auto& value : before) value = static_cast<std::int32_t>(random() % 1000);
    args.a = a.data();
    args.b = b.data();
    std::vector<std::int32_t> expected = before;
    for (std::size_t row = 0; row < args.m; ++row) {
      for (std::size_t col = 0; col < args.n; ++col) {
        std::int32_t sum = args.accumulate ? before[row * args.ldc + col] : 0;
        for (std::size_t p = 0; p < args.k; ++p) {
          const int code = a[row * args.lda + p];
          sum += (args.a_unsigned || code < 128 ? code : code - 256) * weight_of(args, p, col);
        }
        expected[row * args.ldc + col] = sum;
      }
    }
    for (const GemmBackend backend : kGemmBackends) {
      if (!gemm_supported(backend)) continue;
      std::vector<std::int32_t> c = before;
      args.c = c.data();
      gemm(args, backend);
      ASSERT_EQ(c, expected) << gemm_backend_name(backend);
    }
    args.ldb = (args.b_transposed ? pairs : args.n) - 1;
    EXPECT_THROW(gemm(args), std::invalid_argument);
  }
}

}  // namespace
}  // namespace systole::hw

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/kernel/gemm.h"

/// Products of int4 weights and activations, against sums of integers that know nothing of their
/// expansion.
namespace systole::hw {
namespace {

/// Of a byte's two, that of element `p` of a row.
int int4_of(std::uint8_t byte, std::size_t p) {
  const int half = p % 2 == 0 ? byte % 16 : byte / 16;
  return half < 8 ? half : half - 16;
}

/// The weight of row `p` and column `j` of B.
int weight_of(const GemmArgs& args, std::size_t p, std::size_t j) {
  const std::size_t at = args.b_transposed ? j * args.ldb + p / 2 : p / 2 * args.ldb + j;
  return int4_of(static_cast<std::uint8_t>(args.b[at]), p);
}

TEST(GemmInt4, EqualsSumsOfIntegersOnEveryBackend) {
  std::mt19937 random(9);
  for (int i = 0; i < 300; ++i) {
    GemmArgs args;
    args.m = 1 + random() % 20;
    args.n = 1 + random() % 40;
    args.k = 1 + random() % 90;
    args.a_int4 = random() % 2 != 0;
    args.a_unsigned = !args.a_int4 && random() % 2 != 0;
    args.b_transposed = random() % 2 != 0;
    args.b_int4 = true;
    args.accumulate = random() % 2 != 0;
    const std::size_t pairs = (args.k + 1) / 2;
    args.lda = (args.a_int4 ? pairs : args.k) + random() % 3;
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
          const std::uint8_t byte = a[row * args.lda + (args.a_int4 ? p / 2 : p)];
          const int code = args.a_unsigned || byte < 128 ? byte : byte - 256;
          sum += (args.a_int4 ? int4_of(byte, p) : code) * weight_of(args, p, col);
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
    --args.lda;
    if (args.lda < (args.a_int4 ? pairs : args.k)) {
      EXPECT_THROW(gemm(args), std::invalid_argument);
    }
    ++args.lda;
    args.ldb = (args.b_transposed ? pairs : args.n) - 1;
    EXPECT_THROW(gemm(args), std::invalid_argument);
  }
}

}  // namespace
}  // namespace systole::hw

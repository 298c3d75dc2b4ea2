/// The AMX blocking over a software model of the tile registers, for hosts without AMX.
#include <gtest/gtest.h>

#include "hw/kernel/gemm_kernels.h"
#include "tests/hw/kernel/gemm_operands.h"

#if SYSTOLE_GEMM_X86

#include "hw/kernel/gemm_amx_kernel.h"

namespace systole::hw {
namespace {

using gemm_test::Case;
using gemm_test::Operands;

/// Eight tiles of 16 rows x 64 bytes, as the instruction set reference describes them.
struct SoftwareTiles {
  using Tile = std::uint8_t[16][64];
  static Tile tiles[8];

  template <int kTile>
  static void zero() {
    std::memset(tiles[kTile], 0, sizeof(Tile));
  }
  template <int kTile>
  static void load(const void* from, std::size_t pitch) {
    const auto* bytes = static_cast<const std::uint8_t*>(from);
    for (std::size_t r = 0; r < 16; ++r) std::memcpy(tiles[kTile][r], bytes + r * pitch, 64);
  }
  template <int kTile>
  static void store(void* to, std::size_t pitch) {
    auto* bytes = static_cast<std::uint8_t*>(to);
    for (std::size_t r = 0; r < 16; ++r) std::memcpy(bytes + r * pitch, tiles[kTile][r], 64);
  }
  template <int kC, int kA, int kB, bool kUnsigned>
  static void dot() {
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        std::uint32_t sum = 0;
        std::memcpy(&sum, &tiles[kC][row][4 * column], 4);
        for (int p = 0; p < 64; ++p) {
          const std::uint8_t a = tiles[kA][row][p];
          const int left = kUnsigned ? a : static_cast<std::int8_t>(a);
          const int right = static_cast<std::int8_t>(tiles[kB][p / 4][4 * column + p % 4]);
          sum += static_cast<std::uint32_t>(left * right);
        }
        std::memcpy(&tiles[kC][row][4 * column], &sum, 4);
      }
    }
  }
};
SoftwareTiles::Tile SoftwareTiles::tiles[8];

void multiply(const GemmArgs& args) {
  if (args.m == 0 || args.n == 0 || args.k == 0) return gemm(args, GemmBackend::kReference);
  gemm_detail::AmxKernel<SoftwareTiles> kernel(
      args, gemm_detail::thread_scratch<gemm_detail::AmxScratch>());
  gemm_detail::multiply_blocked(args, kernel);
}

TEST(GemmAmxModel, EqualsReference) {
  if (!gemm_supported(GemmBackend::kVnni)) {
    GTEST_SKIP() << "NOT TESTED: packing for AMX needs AVX512-VNNI, which this host lacks";
  }
  const auto check = [](const Case& c) {
    const Operands operands(c, 8);
    const auto reference = [](const GemmArgs& args) { gemm(args, GemmBackend::kReference); };
    EXPECT_EQ(operands.result(multiply), operands.result(reference)) << c;
  };
  gemm_test::for_each_standard_case(check);
  gemm_test::for_each_random_case(300, check);
}

}  // namespace
}  // namespace systole::hw

#endif

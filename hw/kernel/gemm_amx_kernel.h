/// AMX blocking of the GEMM over a set of eight tile registers. The tiles are a parameter, so that
/// the tests can run this code over a software model of them on processors without AMX.
#pragma once

#include "hw/kernel/gemm_pack.h"

#if SYSTOLE_GEMM_X86

namespace systole::hw::gemm_detail {

inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileBytes = 64;  // bytes of a tile row
inline constexpr std::size_t kAmxBlock = 2 * kTileRows;

struct AmxScratch : QuadScratch {
  alignas(64) std::int32_t c[kAmxBlock * kAmxBlock];
};

/// Adds the top left corner of the block in `from` to C, or overwrites C with it.
void store_amx_block(const std::int32_t* from, std::size_t rows, std::size_t columns,
                     std::int32_t* c, std::size_t ldc, bool add);

/// Tiles offers, for tile numbers 0..7 of 16 rows x 64 bytes: zero<T>(), load<T>(from, pitch),
/// store<T>(to, pitch), dot<C, A, B, kUnsigned>(): C += A * B with A unsigned or signed bytes
/// and B signed bytes as [16 quads of k][16 columns][4].
template <class Tiles>
class AmxKernel {
 public:
  static constexpr std::size_t kMaxRows = kQuadMaxRows;
  static constexpr std::size_t kRowUnit = kAmxBlock;
  static constexpr std::size_t kMaxDepth = kQuadMaxDepth;
  static constexpr std::size_t kDepthUnit = kTileBytes;

  AmxKernel(const GemmArgs& args, AmxScratch& scratch) : args_(args), scratch_(scratch) {}

  [[nodiscard]] static std::size_t panel_columns() { return kQuadColumns; }

  void pack_a(Range rows, Range depth) { pack_quads_a(args_, rows, depth, 0, scratch_); }

  void pack_b(Range columns, Range depth) {
    pack_quads_b(args_, columns, depth, kDepthUnit, scratch_);
  }

  void multiply(Range rows, Range columns, Range depth, bool add) {
    for (std::size_t i = 0; i < rows.size; i += kAmxBlock) {
      const std::size_t count = std::min(kAmxBlock, rows.size - i);
      const std::uint8_t* a = scratch_.a + i * kQuadPitch;
      const bool low = count > kTileRows;
      const bool right = columns.size > kTileRows;
      if (args_.a_unsigned) {
        multiply_block<true>(a, depth.size, low, right);
      } else {
        multiply_block<false>(a, depth.size, low, right);
      }
      std::int32_t* c = args_.c + (rows.begin + i) * args_.ldc + columns.begin;
      store_amx_block(scratch_.c, count, columns.size, c, args_.ldc, add);
    }
  }

 private:
  /// Tiles 0..3 hold C as [upper left, upper right, lower left, lower right], 4 and 5 hold A, 6 and
  /// 7 hold B. The lower and the right half may be absent. Rows of A after the last are old packed
  /// data: their products are not stored.
  template <bool kUnsigned>
  void multiply_block(const std::uint8_t* a, std::size_t depth, bool low, bool right) {
    constexpr std::size_t kPitch = kAmxBlock * sizeof(std::int32_t);
    Tiles::template zero<0>();
    Tiles::template zero<1>();
    Tiles::template zero<2>();
    Tiles::template zero<3>();
    const std::int8_t* b = scratch_.b;
    for (std::size_t p = 0; p < depth; p += kTileBytes, b += kTileRows * kQuadRowBytes) {
      Tiles::template load<4>(a + p, kQuadPitch);
      Tiles::template load<6>(b, kQuadRowBytes);
      Tiles::template dot<0, 4, 6, kUnsigned>();
      if (right) {
        Tiles::template load<7>(b + kTileBytes, kQuadRowBytes);
        Tiles::template dot<1, 4, 7, kUnsigned>();
      }
      if (!low) continue;
      Tiles::template load<5>(a + p + kTileRows * kQuadPitch, kQuadPitch);
      Tiles::template dot<2, 5, 6, kUnsigned>();
      if (right) Tiles::template dot<3, 5, 7, kUnsigned>();
    }
    Tiles::template store<0>(scratch_.c, kPitch);
    Tiles::template store<1>(scratch_.c + kTileRows, kPitch);
    Tiles::template store<2>(scratch_.c + kTileRows * kAmxBlock, kPitch);
    Tiles::template store<3>(scratch_.c + kTileRows * kAmxBlock + kTileRows, kPitch);
  }

  const GemmArgs& args_;
  AmxScratch& scratch_;
};

}  // namespace systole::hw::gemm_detail

#endif

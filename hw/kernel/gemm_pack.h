/// Packing shared by the AVX512-VNNI and AMX backends. Both multiply "quads", four neighbours in k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/kernel/gemm.h"
#include "hw/kernel/gemm_blocks.h"
#include "hw/kernel/gemm_kernels.h"

#if SYSTOLE_GEMM_X86

#define SYSTOLE_AVX512_VNNI \
  __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

namespace systole::hw::gemm_detail {

inline constexpr std::size_t kLanes = 16;  ///< 32-bit lanes of an AVX512 vector
inline constexpr std::size_t kQuadMaxRows = 512;
inline constexpr std::size_t kQuadMaxDepth = 768;  // panel of B: 24 KiB, half the L1 of the host
inline constexpr std::size_t kQuadColumns = 32;
/// Bytes between rows of packed A. An odd number of cache lines, so that rows use all cache sets.
inline constexpr std::size_t kQuadPitch = kQuadMaxDepth + 64;
/// Bytes of one quad row of a packed panel: [column][4].
inline constexpr std::size_t kQuadRowBytes = kQuadColumns * 4;

struct QuadScratch {
  alignas(64) std::uint8_t a[kQuadMaxRows * kQuadPitch];
  alignas(64) std::int8_t b[kQuadMaxDepth / 4 * kQuadRowBytes];
  /// Minus 128 times the column sums of the packed panel: undoes the shift of a signed A to 0..255.
  alignas(64) std::int32_t shift_correction[kQuadColumns];
};

/// Copies rows x depth of A, each byte exclusive-or `flip`, zero-filled to a multiple of 64 in k.
void pack_quads_a(const GemmArgs& args, Range rows, Range depth, std::uint8_t flip,
                  QuadScratch& out);

/// Packs depth x columns of B as [k / 4][column][4], zero-filled to a multiple of `depth_unit` in k
/// and of 16 in n; depth_unit is 4 or 64. Fills shift_correction.
void pack_quads_b(const GemmArgs& args, Range columns, Range depth, std::size_t depth_unit,
                  QuadScratch& out);

}  // namespace systole::hw::gemm_detail

#endif

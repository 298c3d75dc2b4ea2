/// AVX512-VNNI: vpdpbusd multiplies unsigned by signed bytes and adds four products to an int32
/// without saturating. A signed A is shifted to 0..255 and the shift taken back per column of B.
#include "hw/kernel/gemm_kernels.h"
#include "hw/kernel/gemm_pack.h"

#if SYSTOLE_GEMM_X86

#include <immintrin.h>

#include <cstring>

namespace systole::hw::gemm_detail {
namespace {

constexpr std::size_t kKernelRows = 8;  // 8 x 2 sums; 12 x 2 would be spilled by g++ 12

struct KernelArgs {
  const std::uint8_t* a;
  const std::int8_t* b;
  std::size_t quads;
  const std::int32_t* start;  ///< kQuadColumns first values of the sums
  std::int32_t* c;
  std::size_t ldc;
  __mmask16 last;  ///< valid columns of the last vector
  bool add;
};

/// The arguments by value: the stores to C cannot change a copy, so that it stays in registers.
template <std::size_t kRows, std::size_t kVectors>
SYSTOLE_AVX512_VNNI void multiply_rows(const KernelArgs args) {
  __m512i sum[kRows][kVectors];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < kVectors; ++v) {
      sum[r][v] = _mm512_load_si512(args.start + v * kLanes);
      // C is needed only after the loop; by then it has come in from the outer caches.
      __builtin_prefetch(args.c + r * args.ldc + v * kLanes, 1);
    }
  }
  const std::uint8_t* a = args.a;
  const std::int8_t* b = args.b;
  for (std::size_t quad = 0; quad < args.quads; ++quad, a += 4, b += kQuadRowBytes) {
    __m512i columns[kVectors];
#pragma GCC unroll 2
    for (std::size_t v = 0; v < kVectors; ++v) columns[v] = _mm512_load_si512(b + v * 64);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      std::int32_t word;
      std::memcpy(&word, a + r * kQuadPitch, sizeof word);
      const __m512i row = _mm512_set1_epi32(word);
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kVectors; ++v) {
        sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], row, columns[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < kVectors; ++v) {
      std::int32_t* c = args.c + r * args.ldc + v * kLanes;
      const __mmask16 mask = v + 1 == kVectors ? args.last : __mmask16{0xffff};
      __m512i value = sum[r][v];
      if (args.add) value = _mm512_add_epi32(value, _mm512_maskz_loadu_epi32(mask, c));
      _mm512_mask_storeu_epi32(c, mask, value);
    }
  }
}

template <std::size_t kVectors>
void multiply_up_to_8_rows(const KernelArgs& args, std::size_t rows) {
  switch (rows) {
    case 1:
      return multiply_rows<1, kVectors>(args);
    case 2:
      return multiply_rows<2, kVectors>(args);
    case 3:
      return multiply_rows<3, kVectors>(args);
    case 4:
      return multiply_rows<4, kVectors>(args);
    case 5:
      return multiply_rows<5, kVectors>(args);
    case 6:
      return multiply_rows<6, kVectors>(args);
    case 7:
      return multiply_rows<7, kVectors>(args);
    default:
      return multiply_rows<8, kVectors>(args);
  }
}

class VnniKernel {
 public:
  static constexpr std::size_t kMaxRows = kQuadMaxRows;
  static constexpr std::size_t kRowUnit = kKernelRows;
  static constexpr std::size_t kMaxDepth = kQuadMaxDepth;
  static constexpr std::size_t kDepthUnit = 4;

  VnniKernel(const GemmArgs& args, QuadScratch& scratch) : args_(args), scratch_(scratch) {}

  [[nodiscard]] static std::size_t panel_columns() { return kQuadColumns; }

  void pack_a(Range rows, Range depth) {
    pack_quads_a(args_, rows, depth, args_.a_unsigned ? 0 : 0x80, scratch_);
  }

  void pack_b(Range columns, Range depth) {
    pack_quads_b(args_, columns, depth, kDepthUnit, scratch_);
  }

  void multiply(Range rows, Range columns, Range depth, bool add) {
    alignas(64) static constexpr std::int32_t kZeros[kQuadColumns] = {};
    const std::size_t rest = columns.size % kLanes;
    KernelArgs args{};
    args.b = scratch_.b;
    args.quads = round_up(depth.size, kDepthUnit) / 4;
    args.start = args_.a_unsigned ? kZeros : scratch_.shift_correction;
    args.ldc = args_.ldc;
    args.last = static_cast<__mmask16>(rest == 0 ? 0xffffU : (1U << rest) - 1U);
    args.add = add;
    for (std::size_t i = 0; i < rows.size; i += kKernelRows) {
      const std::size_t count = std::min(kKernelRows, rows.size - i);
      args.a = scratch_.a + i * kQuadPitch;
      args.c = args_.c + (rows.begin + i) * args_.ldc + columns.begin;
      if (columns.size > kLanes) {
        multiply_up_to_8_rows<2>(args, count);
      } else {
        multiply_up_to_8_rows<1>(args, count);
      }
    }
  }

 private:
  const GemmArgs& args_;
  QuadScratch& scratch_;
};

}  // namespace

bool vnni_usable() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

void gemm_vnni(const GemmArgs& args) {
  VnniKernel kernel(args, thread_scratch<QuadScratch>());
  multiply_blocked(args, kernel);
}

}  // namespace systole::hw::gemm_detail

#else

namespace systole::hw::gemm_detail {

bool vnni_usable() { return false; }
void gemm_vnni(const GemmArgs& args) { gemm_reference(args); }

}  // namespace systole::hw::gemm_detail

#endif

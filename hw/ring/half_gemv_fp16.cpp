/// AVX512-FP16: the processor's own halves, rounded by each operation, subnormals in full whatever
/// its flags say. Columns of a tile are halved to 32 elements; from there on two vectors are merged
/// into one with half as many elements of each column, until one vector has all sixteen sums.
#include "hw/ring/half_kernels.h"

// Clang 14 declares these intrinsics only for a whole file compiled for such a processor.
#if defined(__x86_64__) && ((defined(__GNUC__) && !defined(__clang__)) || defined(__AVX512FP16__))

#include <cpuid.h>
#include <immintrin.h>

#define SYSTOLE_FP16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512fp16")))
#define SYSTOLE_FP16_INLINE SYSTOLE_FP16 __attribute__((always_inline)) inline

namespace systole::hw::half_detail {
namespace {

constexpr std::size_t kVector = 32;  // halves
constexpr std::size_t kColumns = 16;

SYSTOLE_FP16_INLINE __m512h add(__m512i a, __m512i b) {
  return _mm512_add_ph(_mm512_castsi512_ph(a), _mm512_castsi512_ph(b));
}

// The forms with a mask: g++ 12 takes the others for a use of what is not set.
constexpr __mmask8 kAll = 0xff;
constexpr __mmask16 kAllWords = 0xffff;

/// Adds what `kLow` selects of the 128-bit parts of two vectors to what `kHigh` selects.
template <int kLow, int kHigh>
SYSTOLE_FP16_INLINE __m512i add_parts(__m512i a, __m512i b) {
  return _mm512_castph_si512(add(_mm512_maskz_shuffle_i64x2(kAll, a, b, kLow),
                                 _mm512_maskz_shuffle_i64x2(kAll, a, b, kHigh)));
}

/// Products of a column, added up to 32 sums.
template <std::size_t kVectors>
SYSTOLE_FP16_INLINE __m512i column_sums(const __m512h* x, const Half* w) {
  __m512h products[kVectors];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < kVectors; ++v) {
    // In the form that names a rounding, the compiler does not fuse it with the sum.
    const __m512h factor = _mm512_loadu_ph(w + v * kVector);
    products[v] = _mm512_mul_round_ph(x[v], factor, _MM_FROUND_CUR_DIRECTION);
  }
#pragma GCC unroll 2
  for (std::size_t half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < half; ++v) {
      products[v] = _mm512_add_ph(products[v], products[v + half]);
    }
  }
  return _mm512_castph_si512(products[0]);
}

/// Sixteen sums of each of two columns.
template <std::size_t kVectors>
SYSTOLE_FP16_INLINE __m512i two_columns(const __m512h* x, const Half* w, std::size_t next) {
  const __m512i a = column_sums<kVectors>(x, w);
  const __m512i b = column_sums<kVectors>(x, w + next);
  return add_parts<0x44, 0xee>(a, b);
}

/// Eight sums of each of four columns, a column in 128 bits.
template <std::size_t kVectors>
SYSTOLE_FP16_INLINE __m512i four_columns(const __m512h* x, const Half* w, std::size_t next) {
  const __m512i a = two_columns<kVectors>(x, w, next);
  const __m512i b = two_columns<kVectors>(x, w + 2 * next, next);
  return add_parts<0x88, 0xdd>(a, b);
}

/// Four sums of each of eight columns: in 128 bits one of the four at w and one of the four after.
template <std::size_t kVectors>
SYSTOLE_FP16_INLINE __m512i eight_columns(const __m512h* x, const Half* w, std::size_t next,
                                          std::size_t after) {
  const __m512i a = four_columns<kVectors>(x, w, next);
  const __m512i b = four_columns<kVectors>(x, w + after, next);
  return _mm512_castph_si512(
      add(_mm512_maskz_unpacklo_epi64(kAll, a, b), _mm512_maskz_unpackhi_epi64(kAll, a, b)));
}

/// What a tile adds to sixteen columns, in their order: 128 bits take every fourth column, and so
/// four neighbours end in each of them.
template <std::size_t kVectors>
SYSTOLE_FP16_INLINE __m256h sixteen_columns(const __m512h* x, const Half* w) {
  constexpr std::size_t kDepth = kVectors * kVector;
  const __m512i a = eight_columns<kVectors>(x, w, 4 * kDepth, kDepth);
  const __m512i b = eight_columns<kVectors>(x, w + 2 * kDepth, 4 * kDepth, kDepth);
  const __m512 a_pairs = _mm512_castsi512_ps(a);
  const __m512 b_pairs = _mm512_castsi512_ps(b);
  const __m512i two = _mm512_castph_si512(
      add(_mm512_castps_si512(_mm512_maskz_shuffle_ps(kAllWords, a_pairs, b_pairs, 0x88)),
          _mm512_castps_si512(_mm512_maskz_shuffle_ps(kAllWords, a_pairs, b_pairs, 0xdd))));
  const __m512i one = _mm512_castph_si512(add(two, _mm512_maskz_srli_epi32(kAllWords, two, 16)));
  return _mm256_castsi256_ph(_mm512_maskz_cvtepi32_epi16(kAllWords, one));
}

template <std::size_t kVectors>
SYSTOLE_FP16 void multiply_columns(const HalfGemv& args, std::size_t row, std::size_t slice,
                                   std::size_t lane) {
  constexpr std::size_t kDepth = kVectors * kVector;
  const std::size_t column = slice * args.lanes + lane;
  const Half* from = args.x + row * args.x_pitch;
  __m256h sum = args.bias == nullptr ? _mm256_setzero_ph() : _mm256_loadu_ph(args.bias + column);
  for (std::size_t k = 0; k < args.k_tiles; ++k, from += kDepth) {
    __m512h x[kVectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) x[v] = _mm512_loadu_ph(from + v * kVector);
    const Half* w = tile_of(args, slice, k) + lane * kDepth;
    sum = _mm256_add_ph(sum, sixteen_columns<kVectors>(x, w));
  }
  const __m256i nan = _mm256_set1_epi16(static_cast<short>(kHalfNan.bits));
  const __m256i bits = _mm256_mask_mov_epi16(_mm256_castph_si256(sum),
                                             _mm256_cmp_ph_mask(sum, sum, _CMP_UNORD_Q), nan);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(args.y + row * args.y_pitch + column), bits);
}

template <std::size_t kVectors>
void multiply(const HalfGemv& args) {
  for (std::size_t slice = 0; slice < args.slices; ++slice) {
    for (std::size_t row = 0; row < args.rows; ++row) {
      for (std::size_t lane = 0; lane < args.lanes; lane += kColumns) {
        multiply_columns<kVectors>(args, row, slice, lane);
      }
    }
  }
}

}  // namespace

bool fp16_usable() {
  constexpr unsigned kFp16Bit = 1U << 23;  // of edx; clang 14 does not know its name
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kFp16Bit) == 0) return false;
  // These ask for the operating system's part as well.
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool fp16_fits(const HalfGemv& args) { return args.depth >= kVector && args.lanes % kColumns == 0; }

void gemv_fp16(const HalfGemv& args) {
  switch (args.depth) {
    case kVector:
      return multiply<1>(args);
    case 2 * kVector:
      return multiply<2>(args);
    default:
      return multiply<4>(args);
  }
}

}  // namespace systole::hw::half_detail

#else

namespace systole::hw::half_detail {

bool fp16_usable() { return false; }
bool fp16_fits(const HalfGemv& /*args*/) { return false; }
void gemv_fp16(const HalfGemv& args) { gemv_plain(args); }

}  // namespace systole::hw::half_detail

#endif

#include "hw/kernel/gemm_pack.h"

#if SYSTOLE_GEMM_X86

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 reports the deliberately undefined operand inside its own AVX512 intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

namespace systole::hw::gemm_detail {
namespace {

[[nodiscard]] __mmask16 first(std::size_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffffU : (1U << count) - 1U);
}

/// Four rows of 16 bytes, one per 128-bit part. Masked-off bytes are zero and are not accessed.
SYSTOLE_AVX512_VNNI inline __m512i load_parts(const std::int8_t* b, std::size_t pitch,
                                              __mmask16 mask) {
  __m512i all = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, b));
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(mask, b + pitch), 1);
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(mask, b + 2 * pitch), 2);
  return _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(mask, b + 3 * pitch), 3);
}

/// As above when only the first `rows` of the four exist.
SYSTOLE_AVX512_VNNI __attribute__((noinline)) __m512i load_some_parts(const std::int8_t* b,
                                                                      std::size_t pitch,
                                                                      __mmask16 mask,
                                                                      std::size_t rows) {
  alignas(64) std::int8_t part[4][16] = {};
  for (std::size_t r = 0; r < rows; ++r) {
    const __m128i row = _mm_maskz_loadu_epi8(mask, b + r * pitch);
    _mm_store_si128(reinterpret_cast<__m128i*>(part[r]), row);
  }
  return _mm512_load_si512(part);
}

/// Stores quads of 16 columns and keeps the running sum of 128 * b per column.
struct QuadSink {
  std::int8_t* out;
  __m512i sum;

  SYSTOLE_AVX512_VNNI void put(std::size_t quad, __m512i values) {
    _mm512_store_si512(out + quad * kQuadRowBytes, values);
    sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(-128), values);
  }
};

/// Makes a quad of each column from four parts that are four rows of B.
class ByteTranspose {
 public:
  SYSTOLE_AVX512_VNNI ByteTranspose()
      : gather_(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)),
        order_(_mm512_broadcast_i32x4(
            _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15))) {
    // clang, when it sees both constants, merges the two shuffles into one of bytes across the
    // vector, which plain AVX512BW can only do in a dozen instructions.
    asm("" : "+v"(order_));
  }

  SYSTOLE_AVX512_VNNI __m512i operator()(__m512i parts) const {
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(gather_, parts), order_);
  }

 private:
  __m512i gather_;
  __m512i order_;
};

/// B stored by rows. kVectors vectors of 16 columns at once, so that a row is fetched once.
template <std::size_t kVectors>
SYSTOLE_AVX512_VNNI void pack_by_rows(const std::int8_t* b, std::size_t pitch, __mmask16 last,
                                      std::size_t depth, std::size_t quads, QuadSink* sinks) {
  const ByteTranspose transpose;
  QuadSink sink[2] = {sinks[0], sinks[1]};
  std::size_t quad = 0;
  for (; quad < depth / 4; ++quad, b += 4 * pitch) {
    if (kVectors == 2) sink[0].put(quad, transpose(load_parts(b, pitch, 0xffff)));
    const std::int8_t* b_last = b + (kVectors - 1) * kLanes;
    sink[kVectors - 1].put(quad, transpose(load_parts(b_last, pitch, last)));
  }
  for (std::size_t rows = depth % 4; quad < quads; ++quad, rows = 0) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const __mmask16 mask = v + 1 == kVectors ? last : __mmask16{0xffff};
      const __m512i parts = load_some_parts(b + v * kLanes, pitch, mask, rows);
      sink[v].put(quad, transpose(parts));
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) sinks[v] = sink[v];
}

/// B stored by columns, up to 16 of them: quads are contiguous, so this transposes 32-bit words.
SYSTOLE_AVX512_VNNI void pack_by_columns(const std::int8_t* b, std::size_t pitch,
                                         std::size_t columns, std::size_t depth, std::size_t quads,
                                         QuadSink& sink) {
  for (std::size_t quad = 0; quad < quads; quad += 4) {
    const std::size_t k = quad * 4;
    const __mmask16 mask = first(k < depth ? depth - k : 0);
    const std::int8_t* from = b + std::min(k, depth);
    __m512i word[4];  // word[i]: columns i, i + 4, i + 8, i + 12, four quads of each
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t exist = i < columns ? (columns - i + 3) / 4 : 0;
      word[i] = exist == 4
                    ? load_parts(from + i * pitch, 4 * pitch, mask)
                    : load_some_parts(from + std::min(i, columns) * pitch, 4 * pitch, mask, exist);
    }
    const __m512i low01 = _mm512_unpacklo_epi32(word[0], word[1]);
    const __m512i high01 = _mm512_unpackhi_epi32(word[0], word[1]);
    const __m512i low23 = _mm512_unpacklo_epi32(word[2], word[3]);
    const __m512i high23 = _mm512_unpackhi_epi32(word[2], word[3]);
    sink.put(quad, _mm512_unpacklo_epi64(low01, low23));
    if (quad + 1 < quads) sink.put(quad + 1, _mm512_unpackhi_epi64(low01, low23));
    if (quad + 2 < quads) sink.put(quad + 2, _mm512_unpacklo_epi64(high01, high23));
    if (quad + 3 < quads) sink.put(quad + 3, _mm512_unpackhi_epi64(high01, high23));
  }
}

}  // namespace

SYSTOLE_AVX512_VNNI void pack_quads_a(const GemmArgs& args, Range rows, Range depth,
                                      std::uint8_t flip, QuadScratch& out) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  const auto* a = static_cast<const std::uint8_t*>(args.a) + rows.begin * args.lda + depth.begin;
  const std::size_t tail = depth.size % 64;
  const std::size_t whole = depth.size - tail;
  const __mmask64 tail_mask = (__mmask64{1} << tail) - 1;
  for (std::size_t i = 0; i < rows.size; ++i, a += args.lda) {
    std::uint8_t* to = out.a + i * kQuadPitch;
    for (std::size_t p = 0; p < whole; p += 64) {
      _mm512_store_si512(to + p, _mm512_xor_si512(_mm512_loadu_si512(a + p), flips));
    }
    if (tail != 0) {
      const __m512i bytes = _mm512_maskz_loadu_epi8(tail_mask, a + whole);
      _mm512_store_si512(to + whole, _mm512_xor_si512(bytes, flips));
    }
  }
}

SYSTOLE_AVX512_VNNI void pack_quads_b(const GemmArgs& args, Range columns, Range depth,
                                      std::size_t depth_unit, QuadScratch& out) {
  const std::size_t quads = round_up(depth.size, depth_unit) / 4;
  const std::size_t vectors = (columns.size + kLanes - 1) / kLanes;
  QuadSink sinks[2] = {{out.b, _mm512_setzero_si512()}, {out.b + 64, _mm512_setzero_si512()}};
  if (args.b_transposed) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::int8_t* b = args.b + (columns.begin + v * kLanes) * args.ldb + depth.begin;
      const std::size_t count = std::min(kLanes, columns.size - v * kLanes);
      pack_by_columns(b, args.ldb, count, depth.size, quads, sinks[v]);
    }
  } else {
    const std::int8_t* b = args.b + depth.begin * args.ldb + columns.begin;
    const __mmask16 last = first(columns.size - (vectors - 1) * kLanes);
    if (vectors == 2) {
      pack_by_rows<2>(b, args.ldb, last, depth.size, quads, sinks);
    } else {
      pack_by_rows<1>(b, args.ldb, last, depth.size, quads, sinks);
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) {
    _mm512_store_si512(out.shift_correction + v * kLanes,
                       _mm512_sub_epi32(_mm512_setzero_si512(), sinks[v].sum));
  }
}

}  // namespace systole::hw::gemm_detail

#endif

/// Portable SIMD: bytes widened to int16, multiplied and added in pairs. |a * b| <= 255 * 128, so a
/// sum of two products is far from the int32 limit, and no intermediate saturates.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/kernel/gemm_highway.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "hw/kernel/gemm_blocks.h"
#include "hw/kernel/gemm_kernels.h"

// Once for all targets.
#ifndef SYSTOLE_HW_KERNEL_GEMM_HIGHWAY_ONCE
#define SYSTOLE_HW_KERNEL_GEMM_HIGHWAY_ONCE

namespace systole::hw::gemm_detail {

inline constexpr std::size_t kPairMaxRows = 516;  // a multiple of kPairKernelRows
inline constexpr std::size_t kPairKernelRows = 6;
inline constexpr std::size_t kPairMaxDepth = 256;
inline constexpr std::size_t kMaxLanes = 16;  // int32 lanes of a vector
/// int16 between the halves of a row of A, and between rows: an odd number of cache lines.
inline constexpr std::size_t kPairHalf = kPairMaxDepth / 2;
inline constexpr std::size_t kPairPitch = 2 * kPairHalf + 32;

/// Operands are packed in quads of k: first the pair (k, k + 2), then (k + 1, k + 3), because that
/// order needs only shifts inside 16-bit lanes to make from bytes.
struct PairScratch {
  /// A row: the even pairs of all quads, then the odd pairs.
  alignas(64) std::int16_t a[kPairMaxRows * kPairPitch];
  /// A panel: [quad][even, odd][column][2].
  alignas(64) std::int16_t b[kPairMaxDepth * 2 * kMaxLanes];
  /// A quad of each column of a transposed panel, in the byte order of B.
  alignas(64) std::int32_t words[kPairMaxDepth / 4 * 2 * kMaxLanes];
};

}  // namespace systole::hw::gemm_detail

#endif

HWY_BEFORE_NAMESPACE();
namespace systole::hw::gemm_detail::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

// No vector unit: pairwise products of HWY_SCALAR would be wrong and emulation slower than loops.
void multiply(const GemmArgs& args) { gemm_reference(args); }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::CappedTag<std::int32_t, kMaxLanes>;
using D16 = hn::Repartition<std::int16_t, D32>;
using D8 = hn::Repartition<std::int8_t, D32>;
using DHalfByte = hn::Rebind<std::int8_t, D32>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;

/// Splits the bytes at `from` into the even and the odd ones, widened to int16.
template <bool kSigned, class D>
HWY_INLINE void widen(D d8, const std::int8_t* from, std::int16_t* even, std::int16_t* odd) {
  const hn::Repartition<std::int16_t, D> d16;
  const hn::Repartition<std::uint16_t, D> du16;
  const auto bytes = hn::BitCast(d16, hn::LoadU(d8, from));
  if (kSigned) {
    hn::StoreU(hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes)), d16, even);
    hn::StoreU(hn::ShiftRight<8>(bytes), d16, odd);
  } else {
    hn::StoreU(hn::And(bytes, hn::Set(d16, 0xff)), d16, even);
    hn::StoreU(hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(du16, bytes))), d16, odd);
  }
}

template <bool kSigned, class D>
HWY_INLINE std::size_t widen_whole_vectors(D d8, const std::int8_t* a, std::size_t done,
                                           std::size_t depth, std::int16_t* to) {
  for (; depth - done >= hn::Lanes(d8); done += hn::Lanes(d8)) {
    widen<kSigned>(d8, a + done, to + done / 2, to + kPairHalf + done / 2);
  }
  return done;
}

template <bool kSigned>
void pack_a_row(const std::int8_t* a, std::size_t depth, std::int16_t* to) {
  const hn::CappedTag<std::int8_t, 16> small;  // keeps the depth of a tile away from memcpy
  std::size_t done = widen_whole_vectors<kSigned>(D8(), a, 0, depth, to);
  done = widen_whole_vectors<kSigned>(small, a, done, depth, to);
  if (done == depth) return;
  std::int8_t rest[16] = {};
  std::memcpy(rest, a + done, depth - done);
  widen<kSigned>(small, rest, to + done / 2, to + kPairHalf + done / 2);
}

/// One pair of rows of one vector of columns: 32-bit lanes with the first row in the low half.
HWY_INLINE void store_pair(const std::int8_t* first, const std::int8_t* second, std::int16_t* to) {
  const D32 d32;
  const D16 d16;
  const DHalfByte d8;
  const V32 low = hn::PromoteTo(d32, hn::LoadU(d8, first));
  const V32 high = hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d8, second)));
  hn::Store(hn::OddEven(hn::BitCast(d16, high), hn::BitCast(d16, low)), d16, to);
}

/// How many columns a panel has, of the two vectors it has room for.
struct Width {
  std::size_t columns;
  std::size_t vectors;

  explicit Width(std::size_t count) : columns(count), vectors(count > hn::Lanes(D32()) ? 2 : 1) {}
  [[nodiscard]] bool whole() const { return columns == vectors * hn::Lanes(D32()); }
};

/// B stored by rows.
void pack_b_by_rows(const std::int8_t* b, std::size_t pitch, Width width, std::size_t depth,
                    std::int16_t* to) {
  const std::size_t lanes = hn::Lanes(D32());
  alignas(64) std::int8_t rest[4][2 * kMaxLanes] = {};
  const std::int8_t* row[4];
  for (std::size_t k = 0; k < depth; k += 4, to += 8 * lanes) {
    for (std::size_t r = 0; r < 4; ++r) {
      row[r] = rest[r];  // any bytes do for a row past the last one: A is zero there
      if (k + r >= depth) continue;
      const std::int8_t* from = b + (k + r) * pitch;
      if (width.whole()) {
        row[r] = from;
      } else {
        std::memcpy(rest[r], from, width.columns);
      }
    }
    store_pair(row[0], row[2], to);
    store_pair(row[1], row[3], to + 4 * lanes);
    if (width.vectors == 1) continue;
    store_pair(row[0] + lanes, row[2] + lanes, to + 2 * lanes);
    store_pair(row[1] + lanes, row[3] + lanes, to + 6 * lanes);
  }
}

/// B stored by columns: first puts the quads of all columns side by side, then widens them.
void pack_b_by_columns(const std::int8_t* b, std::size_t pitch, Width width, std::size_t depth,
                       PairScratch& scratch) {
  constexpr std::size_t kWordPitch = 2 * kMaxLanes;
  const std::size_t whole_quads = depth / 4;
  for (std::size_t j = 0; j < width.columns; ++j) {
    const std::int8_t* column = b + j * pitch;
    std::int32_t* words = scratch.words + j;
    for (std::size_t quad = 0; quad < whole_quads; ++quad) {
      std::memcpy(words + quad * kWordPitch, column + quad * 4, 4);
    }
    if (depth % 4 != 0) {
      words[whole_quads * kWordPitch] = 0;
      std::memcpy(words + whole_quads * kWordPitch, column + whole_quads * 4, depth % 4);
    }
  }
  // Columns that do not exist keep what an earlier panel left; their sums are never stored.
  const D16 d16;
  const std::size_t lanes = hn::Lanes(d16);
  std::int16_t* to = scratch.b;
  for (std::size_t quad = 0; quad < (depth + 3) / 4; ++quad, to += 4 * lanes) {
    for (std::size_t v = 0; v < width.vectors; ++v) {
      const std::int32_t* words = scratch.words + quad * kWordPitch + v * lanes / 2;
      const auto* bytes = reinterpret_cast<const std::int8_t*>(words);
      widen<true>(D8(), bytes, to + v * lanes, to + (2 + v) * lanes);
    }
  }
}

/// Where the sums of a panel go.
struct Target {
  std::int32_t* c;
  std::size_t ldc;
  Width width;
  bool add;
};

/// Adds two products per lane. Highway may keep a sum in two parts; x86 never uses the second.
HWY_INLINE void add_pairs(V16 row, V16 b, V32& sum, V32& part) {
  sum = hn::ReorderWidenMulAccumulate(D32(), row, b, sum, part);
}

template <std::size_t kVectors>
HWY_INLINE void step(const std::int16_t* a, V16 b0, V16 b1, V32& sum0, V32& sum1, V32& part0,
                     V32& part1) {
  std::int32_t pair;
  std::memcpy(&pair, a, sizeof pair);
  const V16 row = hn::BitCast(D16(), hn::Set(D32(), pair));
  add_pairs(row, b0, sum0, part0);
  if (kVectors == 2) add_pairs(row, b1, sum1, part1);
}

template <std::size_t kVectors>
HWY_INLINE void finish(const Target& target, std::size_t row, V32 sum0, V32 sum1, V32 part0,
                       V32 part1) {
  const D32 d32;
  const std::size_t lanes = hn::Lanes(d32);
  std::int32_t* c = target.c + row * target.ldc;
  alignas(64) std::int32_t rest[2 * kMaxLanes];
  const bool whole = target.width.whole();
  std::int32_t* to = whole ? c : rest;
  if (!whole && target.add) std::memcpy(rest, c, target.width.columns * sizeof *c);
  V32 value0 = hn::RearrangeToOddPlusEven(sum0, part0);
  if (target.add) value0 = hn::Add(value0, hn::LoadU(d32, to));
  hn::StoreU(value0, d32, to);
  if (kVectors == 2) {
    V32 value1 = hn::RearrangeToOddPlusEven(sum1, part1);
    if (target.add) value1 = hn::Add(value1, hn::LoadU(d32, to + lanes));
    hn::StoreU(value1, d32, to + lanes);
  }
  if (!whole) std::memcpy(c, rest, target.width.columns * sizeof *c);
}

/// kRows rows of A times a panel. The sums are named one by one because vectors without a constant
/// size cannot be elements of an array, and because g++ 12 would keep an array of them in memory.
template <std::size_t kRows, std::size_t kVectors>
void multiply_rows(const std::int16_t* a, const std::int16_t* b, std::size_t quads,
                   const Target& target) {
  const D16 d16;
  const std::size_t lanes = hn::Lanes(d16);
  const V32 zero = hn::Zero(D32());
  V32 s00 = zero, s01 = zero, p00 = zero, p01 = zero;
  V32 s10 = zero, s11 = zero, p10 = zero, p11 = zero;
  V32 s20 = zero, s21 = zero, p20 = zero, p21 = zero;
  V32 s30 = zero, s31 = zero, p30 = zero, p31 = zero;
  V32 s40 = zero, s41 = zero, p40 = zero, p41 = zero;
  V32 s50 = zero, s51 = zero, p50 = zero, p51 = zero;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::int16_t* row = a + half * kPairHalf;
    const std::int16_t* panel = b + half * 2 * lanes;
    for (std::size_t quad = 0; quad < quads; ++quad, row += 2, panel += 4 * lanes) {
      const V16 b0 = hn::Load(d16, panel);
      const V16 b1 = hn::Load(d16, panel + lanes);
      step<kVectors>(row, b0, b1, s00, s01, p00, p01);
      if (kRows > 1) step<kVectors>(row + kPairPitch, b0, b1, s10, s11, p10, p11);
      if (kRows > 2) step<kVectors>(row + 2 * kPairPitch, b0, b1, s20, s21, p20, p21);
      if (kRows > 3) step<kVectors>(row + 3 * kPairPitch, b0, b1, s30, s31, p30, p31);
      if (kRows > 4) step<kVectors>(row + 4 * kPairPitch, b0, b1, s40, s41, p40, p41);
      if (kRows > 5) step<kVectors>(row + 5 * kPairPitch, b0, b1, s50, s51, p50, p51);
    }
  }
  finish<kVectors>(target, 0, s00, s01, p00, p01);
  if (kRows > 1) finish<kVectors>(target, 1, s10, s11, p10, p11);
  if (kRows > 2) finish<kVectors>(target, 2, s20, s21, p20, p21);
  if (kRows > 3) finish<kVectors>(target, 3, s30, s31, p30, p31);
  if (kRows > 4) finish<kVectors>(target, 4, s40, s41, p40, p41);
  if (kRows > 5) finish<kVectors>(target, 5, s50, s51, p50, p51);
}

class PairKernel {
 public:
  static constexpr std::size_t kMaxRows = kPairMaxRows;
  static constexpr std::size_t kRowUnit = kPairKernelRows;
  static constexpr std::size_t kMaxDepth = kPairMaxDepth;
  static constexpr std::size_t kDepthUnit = 4;

  PairKernel(const GemmArgs& args, PairScratch& scratch) : args_(args), scratch_(scratch) {}

  [[nodiscard]] static std::size_t panel_columns() { return 2 * hn::Lanes(D32()); }

  void pack_a(Range rows, Range depth) {
    const auto* a = static_cast<const std::int8_t*>(args_.a) + depth.begin;
    for (std::size_t i = 0; i < rows.size; ++i) {
      const std::int8_t* from = a + (rows.begin + i) * args_.lda;
      std::int16_t* to = scratch_.a + i * kPairPitch;
      if (args_.a_unsigned) {
        pack_a_row<false>(from, depth.size, to);
      } else {
        pack_a_row<true>(from, depth.size, to);
      }
    }
  }

  void pack_b(Range columns, Range depth) {
    if (args_.b_transposed) {
      const std::int8_t* b = args_.b + columns.begin * args_.ldb + depth.begin;
      pack_b_by_columns(b, args_.ldb, Width(columns.size), depth.size, scratch_);
    } else {
      const std::int8_t* b = args_.b + depth.begin * args_.ldb + columns.begin;
      pack_b_by_rows(b, args_.ldb, Width(columns.size), depth.size, scratch_.b);
    }
  }

  void multiply(Range rows, Range columns, Range depth, bool add) {
    const Width width(columns.size);
    if (width.vectors == 2) {
      multiply_vectors<2>(rows, columns, depth, width, add);
    } else {
      multiply_vectors<1>(rows, columns, depth, width, add);
    }
  }

 private:
  template <std::size_t kVectors>
  void multiply_vectors(Range rows, Range columns, Range depth, Width width, bool add) {
    const std::size_t quads = (depth.size + 3) / 4;
    std::size_t i = 0;
    const auto run = [&](auto kernel, std::size_t count) {
      for (; rows.size - i >= count; i += count) {
        std::int32_t* c = args_.c + (rows.begin + i) * args_.ldc + columns.begin;
        const Target target{c, args_.ldc, width, add};
        kernel(scratch_.a + i * kPairPitch, scratch_.b, quads, target);
      }
    };
    run(multiply_rows<6, kVectors>, 6);
    run(multiply_rows<4, kVectors>, 4);
    run(multiply_rows<2, kVectors>, 2);
    run(multiply_rows<1, kVectors>, 1);
  }

  const GemmArgs& args_;
  PairScratch& scratch_;
};

void multiply(const GemmArgs& args) {
  PairKernel kernel(args, thread_scratch<PairScratch>());
  multiply_blocked(args, kernel);
}

#endif

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace systole::hw::gemm_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::hw::gemm_detail {

HWY_EXPORT(multiply);
HWY_EXPORT(target_name);

void gemm_highway(const GemmArgs& args) { HWY_DYNAMIC_DISPATCH(multiply)(args); }

const char* highway_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace systole::hw::gemm_detail
#endif

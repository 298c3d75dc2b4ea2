/// Portable SIMD: columns in vectors along K in the order of a tile, halved down to four elements;
/// four of those are transposed, and from there on a lane is a column.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/ring/half_gemv_highway.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include "hw/ring/half_kernels.h"
#include "hw/ring/half_simd-inl.h"

// Once for all targets.
#ifndef SYSTOLE_HW_RING_HALF_GEMV_HIGHWAY_ONCE
#define SYSTOLE_HW_RING_HALF_GEMV_HIGHWAY_ONCE

#include <algorithm>
#include <vector>

namespace systole::hw::half_detail {

inline constexpr std::size_t kGroup = 4;      ///< columns that share a vector in the end
inline constexpr std::size_t kRowBlock = 16;  ///< rows that pass over a slice together

}  // namespace systole::hw::half_detail

#endif

HWY_BEFORE_NAMESPACE();
namespace systole::hw::half_detail::HWY_NAMESPACE {

#if SYSTOLE_HALF_VECTORS

using D4 = hn::FixedTag<float, kGroup>;
using V4 = hn::Vec<D4>;

/// Elements first to first + lanes of the tree's level with `kLength` elements, of kDepth products.
template <std::size_t kDepth, std::size_t kLength, class D>
HWY_INLINE hn::Vec<D> tree_level(D d, const float* x, const Half* w, std::size_t first) {
  if constexpr (kLength == kDepth) {
    return round_to_half(d, hn::Mul(hn::LoadU(d, x + first), load_halves(d, w + first)));
  } else {
    const auto low = tree_level<kDepth, 2 * kLength>(d, x, w, first);
    const auto high = tree_level<kDepth, 2 * kLength>(d, x, w, first + kLength);
    return round_to_half(d, hn::Add(low, high));
  }
}

/// Adds the halves of a vector until four elements are left.
template <class D>
HWY_INLINE V4 fold(D /*d*/, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) == kGroup) {
    return x;
  } else {
    const hn::Half<D> half;
    const auto sum = hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x));
    return fold(half, round_to_half(half, sum));
  }
}

/// Four elements that are left of a column's tree. Inlined it would take long to compile.
template <std::size_t kDepth>
HWY_NOINLINE V4 four_sums(const float* x, const Half* w) {
  const hn::CappedTag<float, kDepth> d;
  return fold(d, tree_level<kDepth, hn::MaxLanes(d)>(d, x, w, 0));
}

/// The sums of four columns, which are adjacent in a tile.
template <std::size_t kDepth>
HWY_INLINE V4 four_columns(const float* x, const Half* w) {
  const D4 d;
  const V4 a = four_sums<kDepth>(x, w);
  const V4 b = four_sums<kDepth>(x, w + kDepth);
  const V4 c = four_sums<kDepth>(x, w + 2 * kDepth);
  const V4 e = four_sums<kDepth>(x, w + 3 * kDepth);
  // Elements 0 and 1 of columns a and c, then of b and e; the same of 2 and 3.
  const V4 ac_low = hn::InterleaveLower(d, a, c);
  const V4 be_low = hn::InterleaveLower(d, b, e);
  const V4 ac_high = hn::InterleaveUpper(d, a, c);
  const V4 be_high = hn::InterleaveUpper(d, b, e);
  const V4 ac = round_to_half(d, hn::Add(ac_low, ac_high));
  const V4 be = round_to_half(d, hn::Add(be_low, be_high));
  return round_to_half(d, hn::Add(hn::InterleaveLower(d, ac, be), hn::InterleaveUpper(d, ac, be)));
}

template <std::size_t kDepth>
void add_tile(const float* x, const Half* tile, std::size_t lanes, float* sums) {
  const D4 d;
  for (std::size_t lane = 0; lane < lanes; lane += kGroup) {
    const V4 tree = four_columns<kDepth>(x, tile + lane * kDepth);
    hn::StoreU(round_to_half(d, hn::Add(hn::LoadU(d, sums + lane), tree)), d, sums + lane);
  }
}

/// x of a block of rows as floats: [row][k].
void widen_rows(const HalfGemv& args, std::size_t first, std::size_t rows, float* to) {
  const D4 d;
  const std::size_t depth = args.k_tiles * args.depth;
  for (std::size_t row = 0; row < rows; ++row) {
    const Half* from = args.x + (first + row) * args.x_pitch;
    for (std::size_t k = 0; k < depth; k += kGroup, to += kGroup) {
      hn::StoreU(load_halves(d, from + k), d, to);
    }
  }
}

template <std::size_t kDepth>
void multiply_rows(const HalfGemv& args) {
  static thread_local std::vector<float> x;
  static thread_local std::vector<float> sums;
  const std::size_t depth = args.k_tiles * kDepth;
  x.resize(std::min(kRowBlock, args.rows) * depth);
  sums.resize(args.lanes);
  for (std::size_t first = 0; first < args.rows; first += kRowBlock) {
    const std::size_t rows = std::min(kRowBlock, args.rows - first);
    widen_rows(args, first, rows, x.data());
    for (std::size_t slice = 0; slice < args.slices; ++slice) {
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t lane = 0; lane < args.lanes; ++lane) {
          const std::size_t column = slice * args.lanes + lane;
          sums[lane] = args.bias == nullptr ? 0.0F : to_float(args.bias[column]);
        }
        for (std::size_t k = 0; k < args.k_tiles; ++k) {
          add_tile<kDepth>(x.data() + row * depth + k * kDepth, tile_of(args, slice, k), args.lanes,
                           sums.data());
        }
        Half* y = args.y + (first + row) * args.y_pitch + slice * args.lanes;
        for (std::size_t lane = 0; lane < args.lanes; ++lane) y[lane] = to_half(sums[lane]);
      }
    }
  }
}

void multiply(const HalfGemv& args) {
  switch (args.depth) {
    case 4:
      return multiply_rows<4>(args);
    case 8:
      return multiply_rows<8>(args);
    case 16:
      return multiply_rows<16>(args);
    case 32:
      return multiply_rows<32>(args);
    case 64:
      return multiply_rows<64>(args);
    default:
      return multiply_rows<128>(args);
  }
}

#else

void multiply(const HalfGemv& args) { gemv_plain(args); }

#endif

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace systole::hw::half_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::hw::half_detail {

HWY_EXPORT(multiply);
HWY_EXPORT(target_name);

bool highway_fits(const HalfGemv& args) { return args.depth >= 4 && args.lanes % kGroup == 0; }

void gemv_highway(const HalfGemv& args) { HWY_DYNAMIC_DISPATCH(multiply)(args); }

const char* highway_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace systole::hw::half_detail
#endif

/// The values of a matrix unit of trees: half precision products of a matrix, tile by tile, rounded
/// where the unit rounds.
#pragma once

#include <cstddef>

#include "hw/number/half.h"

namespace systole::hw {

/// Rows of y[slices * lanes] = bias + x[k_tiles * depth] * W. A tile holds `depth` inputs of
/// `lanes` columns, [lanes][depth]: with 16 and 64, 2,048 bytes.
///
/// For each column the sum begins with its bias (+0 without one). Each tile along K, in order,
/// gives `depth` rounded products; a tree adds elements i and i + depth / 2, then i and
/// i + depth / 4, and so on, each sum rounded; what remains is added to the column's sum.
struct HalfGemv {
  const Half* x = nullptr;  ///< rows of k_tiles * depth halves, zeros where the inputs end
  std::size_t rows = 1;
  std::size_t x_pitch = 0;  ///< halves from one row to the next
  const Half* tiles = nullptr;
  std::size_t k_tiles = 0;       ///< tiles that a column runs through, at least 1
  std::size_t slices = 0;        ///< of `lanes` columns each
  std::size_t k_stride = 0;      ///< tiles from one to the next along K
  std::size_t slice_stride = 0;  ///< tiles from one slice to the next
  std::size_t depth = 64;        ///< a power of two, 2 to 128
  std::size_t lanes = 16;
  const Half* bias = nullptr;  ///< [slices * lanes], or null
  Half* y = nullptr;           ///< rows of slices * lanes halves; overlaps no operand
  std::size_t y_pitch = 0;     ///< halves from one row to the next
};

/// Implementations, slowest first. All give the same bits.
enum class HalfKernel {
  kPlain,    ///< loops of half_mul() and half_add(), the definition
  kHighway,  ///< portable SIMD in float, best target chosen at run time; from depth 4, whole fours
             ///< of lanes, else plain
  kFp16      ///< AVX512-FP16; from depth 32, whole sixteens of lanes, else the one above
};

inline constexpr HalfKernel kHalfKernels[] = {HalfKernel::kPlain, HalfKernel::kHighway,
                                              HalfKernel::kFp16};

/// Whether this build and this processor can run the kernel.
[[nodiscard]] bool half_kernel_supported(HalfKernel kernel);

/// With the fastest kernel here. Throws std::invalid_argument for a depth or lanes or tiles out of
/// range.
void half_gemv(const HalfGemv& args);
/// As above with a given kernel; also throws std::invalid_argument if it is not supported here.
void half_gemv(const HalfGemv& args, HalfKernel kernel);

/// The sum of n halves (a power of two, at most 128) as a tree adds them.
[[nodiscard]] Half half_tree(const Half* x, std::size_t n);

}  // namespace systole::hw

#include "hw/ring/half_gemv.h"

#include <algorithm>
#include <stdexcept>

#include "hw/kernel/instruction_sets.h"
#include "hw/ring/half_kernels.h"

namespace systole::hw {
namespace {

void check(const HalfGemv& args) {
  const bool power = args.depth != 0 && (args.depth & (args.depth - 1)) == 0;
  if (!power || args.depth < 2 || args.depth > half_detail::kMaxDepth) {
    throw std::invalid_argument("half_gemv: depth is not a power of two from 2 to 128");
  }
  if (args.lanes == 0) throw std::invalid_argument("half_gemv: no lanes");
  if (args.k_tiles == 0) throw std::invalid_argument("half_gemv: no tiles along K");
  if (args.x_pitch < args.k_tiles * args.depth && args.rows > 1) {
    throw std::invalid_argument("half_gemv: x_pitch is less than a row");
  }
  if (args.y_pitch < args.slices * args.lanes && args.rows > 1) {
    throw std::invalid_argument("half_gemv: y_pitch is less than a row");
  }
}

HalfKernel fastest_kernel() {
  return half_kernel_supported(HalfKernel::kFp16) ? HalfKernel::kFp16 : HalfKernel::kHighway;
}

}  // namespace

bool half_kernel_supported(HalfKernel kernel) {
  static const bool fp16 = allows_avx512() && half_detail::fp16_usable();
  return kernel != HalfKernel::kFp16 || fp16;
}

void half_gemv(const HalfGemv& args) { half_gemv(args, fastest_kernel()); }

void half_gemv(const HalfGemv& args, HalfKernel kernel) {
  check(args);
  if (!half_kernel_supported(kernel)) throw std::invalid_argument("half_gemv: unsupported kernel");
  if (kernel == HalfKernel::kFp16 && half_detail::fp16_fits(args)) {
    half_detail::gemv_fp16(args);
  } else if (kernel != HalfKernel::kPlain && half_detail::highway_fits(args)) {
    half_detail::gemv_highway(args);
  } else {
    half_detail::gemv_plain(args);
  }
}

Half half_tree(const Half* x, std::size_t n) {
  Half sums[half_detail::kMaxDepth];
  std::copy_n(x, n, sums);
  for (std::size_t half = n / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] = half_add(sums[i], sums[i + half]);
  }
  return sums[0];
}

void half_detail::gemv_plain(const HalfGemv& args) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    for (std::size_t column = 0; column < args.slices * args.lanes; ++column) {
      Half sum = args.bias == nullptr ? kHalfZero : args.bias[column];
      for (std::size_t k = 0; k < args.k_tiles; ++k) {
        const Half* x = args.x + row * args.x_pitch + k * args.depth;
        const Half* w = tile_of(args, column / args.lanes, k) + column % args.lanes * args.depth;
        Half products[kMaxDepth];
        for (std::size_t i = 0; i < args.depth; ++i) products[i] = half_mul(x[i], w[i]);
        sum = half_add(sum, half_tree(products, args.depth));
      }
      args.y[row * args.y_pitch + column] = sum;
    }
  }
}

}  // namespace systole::hw

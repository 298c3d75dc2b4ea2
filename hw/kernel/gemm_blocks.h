/// The loop nest all SIMD backends of the GEMM share: which part of A and B is packed when.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "hw/kernel/gemm.h"

namespace systole::hw::gemm_detail {

struct Range {
  std::size_t begin = 0;
  std::size_t size = 0;
};

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Size of equal blocks that cover `total`, at most `limit`, a multiple of `unit` (as is `limit`).
/// Equal blocks avoid a last sliver that would pay for packing without work to spread it over.
[[nodiscard]] constexpr std::size_t block_size(std::size_t total, std::size_t limit,
                                               std::size_t unit) {
  const std::size_t blocks = (total + limit - 1) / limit;
  return round_up((total + blocks - 1) / blocks, unit);
}

/// One scratch area per thread, allocated at its first use.
template <class Scratch>
[[nodiscard]] Scratch& thread_scratch() {
  thread_local const std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
  return *scratch;
}

/// Runs the product block by block. A block of A (kMaxRows x kMaxDepth) is packed once and stays in
/// the second-level cache; each panel of B is packed just before its use, into the first level.
/// Kernel offers kMaxRows, kRowUnit, kMaxDepth, kDepthUnit, panel_columns() and the three steps.
template <class Kernel>
void multiply_blocked(const GemmArgs& args, Kernel& kernel) {
  const std::size_t depth_step = block_size(args.k, Kernel::kMaxDepth, Kernel::kDepthUnit);
  const std::size_t row_step = block_size(args.m, Kernel::kMaxRows, Kernel::kRowUnit);
  const std::size_t column_step = kernel.panel_columns();
  for (std::size_t p = 0; p < args.k; p += depth_step) {
    const Range depth{p, std::min(depth_step, args.k - p)};
    const bool add = args.accumulate || p > 0;
    for (std::size_t i = 0; i < args.m; i += row_step) {
      const Range rows{i, std::min(row_step, args.m - i)};
      kernel.pack_a(rows, depth);
      for (std::size_t j = 0; j < args.n; j += column_step) {
        const Range columns{j, std::min(column_step, args.n - j)};
        kernel.pack_b(columns, depth);
        kernel.multiply(rows, columns, depth, add);
      }
    }
  }
}

}  // namespace systole::hw::gemm_detail

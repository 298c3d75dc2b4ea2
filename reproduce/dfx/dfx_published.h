#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reproduce/result_row.h"

/// What DFX (MICRO 2022, arXiv 2209.10797) and those who measured it again published, and what
/// follows from its sizes by arithmetic. Nowhere else does one of these figures stand.
namespace systole::testbench {

/// A size of GPT-2 as tables name it.
struct DfxSize {
  std::string_view name;   ///< "345M"
  std::string_view shape;  ///< of model::gpt_shape()
};
inline constexpr DfxSize kDfx124M{"124M", "gpt2"};
inline constexpr DfxSize kDfx345M{"345M", "gpt2-medium"};
inline constexpr DfxSize kDfx774M{"774M", "gpt2-large"};
inline constexpr DfxSize kDfx1500M{"1.5B", "gpt2-xl-dfx"};  ///< 24 heads of 64
inline constexpr DfxSize kDfxFullXl{"1.5B, 25 heads", "gpt2-xl"};

/// Bytes of a token and the time that an HBM needs for them, with keys and values of 128 tokens.
struct DfxRoofline {
  DfxSize size;
  double megabytes;                 ///< weights in FP16, 1e6 bytes, one decimal
  double cache_kilobytes;           ///< keys and values of a token, one decimal
  std::array<double, 3> at_peak;    ///< ms at 460 GB/s on 1, 2 and 4 cores, three decimals
  std::array<double, 3> at_kernel;  ///< the same at what the core takes at 200 MHz
};
inline constexpr std::uint32_t kDfxRooflineContext = 128;
inline constexpr std::array<std::uint32_t, 3> kDfxRooflineCores = {1, 2, 4};
[[nodiscard]] const std::vector<DfxRoofline>& dfx_rooflines();

/// Cycles in which 1024 multipliers can do a token's products.
struct DfxMatrixBound {
  DfxSize size;
  std::uint32_t cores;
  std::uint32_t projection, hidden, layer, lm_head, total;
};
[[nodiscard]] const std::vector<DfxMatrixBound>& dfx_matrix_bounds();

/// What a layer's four exchanges take at least, in us: one way, and both ways around the ring.
struct DfxRingBound {
  DfxSize size;
  std::uint32_t cores;
  double one_way, both_ways;  ///< bits alone, two decimals
  struct Hop {
    double one_way, both_ways;  ///< with the hops, one decimal
  };
  std::array<Hop, 4> hops;  ///< by kDfxHops
};
inline constexpr std::array<double, 4> kDfxHops = {0.3, 0.5, 1.0, 2.0};  ///< us
[[nodiscard]] const std::vector<DfxRingBound>& dfx_ring_bounds();

/// A single figure by key. Throws std::invalid_argument if there is none.
[[nodiscard]] const Published& dfx_published(std::string_view key);

/// What DFX's paper gives for GPT-2 1.5B on a V100: linear in both, ms.
[[nodiscard]] double dfx_gpu_milliseconds(std::uint32_t input, std::uint32_t output);

/// A number of the tables above, to be met as it is rounded, and within `relative` of itself.
[[nodiscard]] Published dfx_rounded(double value, int decimals, std::string_view unit,
                                    double relative = 0.0);

}  // namespace systole::testbench

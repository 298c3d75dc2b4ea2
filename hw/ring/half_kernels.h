/// Entry points of the kernels that hw/ring/half_gemv.h selects. Arguments are valid.
#pragma once

#include "hw/ring/half_gemv.h"

namespace systole::hw::half_detail {

inline constexpr std::size_t kMaxDepth = 128;

void gemv_plain(const HalfGemv& args);

/// Whether the kernel can run tiles of this shape.
[[nodiscard]] bool highway_fits(const HalfGemv& args);
void gemv_highway(const HalfGemv& args);
/// Highway's name for the instruction set gemv_highway() uses.
[[nodiscard]] const char* highway_target();

[[nodiscard]] bool fp16_usable();
[[nodiscard]] bool fp16_fits(const HalfGemv& args);
void gemv_fp16(const HalfGemv& args);

/// The tile of a slice along K.
inline const Half* tile_of(const HalfGemv& args, std::size_t slice, std::size_t k) {
  return args.tiles + (k * args.k_stride + slice * args.slice_stride) * args.lanes * args.depth;
}

}  // namespace systole::hw::half_detail

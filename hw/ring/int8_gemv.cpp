#include "hw/ring/int8_gemv.h"

#include <algorithm>
#include <cmath>

namespace systole::hw {

std::int8_t quantise(Half x, Half inverse) {
  const Half scaled = half_mul(x, inverse);
  if (is_nan(scaled)) return 0;
  const float value = std::clamp(to_float(scaled), -float{kInt8Limit}, float{kInt8Limit});
  return static_cast<std::int8_t>(std::lrint(value));
}

void int8_gemv(const Int8Gemv& args) {
  for (std::size_t column = 0; column < args.slices * args.lanes; ++column) {
    const std::size_t slice = column / args.lanes, lane = column % args.lanes;
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < args.k_tiles; ++k) {
      const std::int8_t* const tile =
          args.tiles + ((k * args.slices + slice) * args.lanes + lane) * args.depth;
      const std::int8_t* const x = args.x + k * args.depth;
      for (std::size_t i = 0; i < args.depth; ++i) sum += std::int32_t{tile[i]} * x[i];
    }
    const float scale = to_float(args.scale) * to_float(args.column_scales[column]);
    const Half product = to_half(static_cast<float>(sum) * scale);
    args.y[column] = args.bias != nullptr ? half_add(product, args.bias[column]) : product;
  }
}

}  // namespace systole::hw

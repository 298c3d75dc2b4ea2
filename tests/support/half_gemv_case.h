#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "hw/ring/half_gemv.h"
#include "tests/support/half_oracle.h"

namespace systole::test {

/// What the operands of a product look like.
enum class HalfPattern {
  kOrdinary,    ///< of the size of activations and weights
  kSubnormal,   ///< products and sums at the lower end
  kCancelling,  ///< large ones of both signs
  kOverflowing,
  kAnything  ///< any bits, infinities and NaN among them
};
inline constexpr HalfPattern kHalfPatterns[] = {HalfPattern::kOrdinary, HalfPattern::kSubnormal,
                                                HalfPattern::kCancelling, HalfPattern::kOverflowing,
                                                HalfPattern::kAnything};

inline hw::Half half_of(HalfPattern pattern, std::mt19937_64& random) {
  const auto bits = static_cast<unsigned>(random());
  const unsigned sign = bits & 0x8000;
  const auto make = [&](unsigned magnitude) {
    return hw::Half{static_cast<std::uint16_t>(sign | magnitude)};
  };
  switch (pattern) {
    case HalfPattern::kOrdinary:
      return make(0x2800 + (bits & 0x17ff));
    case HalfPattern::kSubnormal:
      return make((bits & 0x1fff) % 0x1c00);
    case HalfPattern::kCancelling:
      return make(0x5800 + (bits & 0x3));
    case HalfPattern::kOverflowing:
      return make(0x5400 + (bits & 0x7ff));
    case HalfPattern::kAnything:
      // NaN soon takes everything; one product in some hundred is enough.
      return bits >> 16 & 0xff ? make(0x3000 + (bits & 0xfff)) : make(bits & 0x7fff);
  }
  return hw::kHalfNan;
}

/// A product with operands and results of its own; rows are further apart than they are long, and
/// there is a bias in every other one.
struct HalfGemvCase {
  struct Shape {
    std::size_t rows, k_tiles, slices, depth, lanes;
  };

  HalfGemvCase(const Shape& of, HalfPattern pattern, std::mt19937_64& random)
      : shape(of),
        x(shape.rows * x_pitch()),
        tiles(shape.k_tiles * shape.slices * shape.depth * shape.lanes),
        bias(random() % 2 == 0 ? 0 : shape.slices * shape.lanes),
        y(shape.rows * y_pitch()) {
    for (std::vector<hw::Half>* values : {&x, &tiles, &bias}) {
      for (hw::Half& value : *values) value = half_of(pattern, random);
    }
  }

  [[nodiscard]] std::size_t x_pitch() const { return shape.k_tiles * shape.depth + 3; }
  [[nodiscard]] std::size_t y_pitch() const { return shape.slices * shape.lanes + 5; }
  /// The tiles of a slice are stored side by side.
  [[nodiscard]] hw::HalfGemv args() {
    hw::HalfGemv args;
    args.x = x.data();
    args.rows = shape.rows;
    args.x_pitch = x_pitch();
    args.tiles = tiles.data();
    args.k_tiles = shape.k_tiles;
    args.slices = shape.slices;
    args.k_stride = 1;
    args.slice_stride = shape.k_tiles;
    args.depth = shape.depth;
    args.lanes = shape.lanes;
    args.bias = bias.empty() ? nullptr : bias.data();
    args.y = y.data();
    args.y_pitch = y_pitch();
    return args;
  }

  Shape shape;
  std::vector<hw::Half> x, tiles, bias, y;
};

}  // namespace systole::test

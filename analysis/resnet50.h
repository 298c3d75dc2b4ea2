#pragma once

#include <cstdint>
#include <vector>

namespace systole::analysis {

/// A convolution by shape: square kernel, square result. Padding keeps the size but for the stride.
struct Convolution {
  std::uint32_t kernel = 1, inputs = 0, outputs = 0;
  std::uint32_t size = 0;  ///< rows, and columns, of the result
  std::uint32_t stride = 1;
  std::uint32_t count = 1;  ///< layers of this shape

  /// Of one layer: multiplications and additions.
  [[nodiscard]] double flops() const;
  /// Of one layer: weights, inputs and results of one byte each, moved once.
  [[nodiscard]] double bytes() const;
  [[nodiscard]] double intensity() const { return flops() / bytes(); }
};

/// The convolutions of ResNet-50 on 224 x 224 pixels in order, equal ones together (He et al.,
/// arXiv 1512.03385, Tab. 1; a stage's first 1 x 1 convolution and its shortcut have stride 2).
[[nodiscard]] std::vector<Convolution> resnet50();

}  // namespace systole::analysis

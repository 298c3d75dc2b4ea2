#pragma once

#include <cstdint>
#include <vector>

#include "analysis/operator_cost.h"

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

/// Operations and bytes of BatchNorm per result of a convolution. Fitted: the survey's Tab. 4
/// (arXiv 2302.14017) prints 0.03e9 of each, which two (a multiplication and an addition, a byte
/// read and a byte written) do not make.
inline constexpr double kBatchNormOperations = 3;

/// Its other operators, each reading its inputs from memory and writing its results there, one byte
/// an element: "BatchNorm", "ReLU", and "other": residual additions, both poolings, the linear
/// layer of 1000 classes.
[[nodiscard]] std::vector<OperatorCost> resnet50_elementwise();

}  // namespace systole::analysis

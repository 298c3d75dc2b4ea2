#pragma once

#include <cstdint>
#include <string>

#include "hw/number/integer.h"
#include "hw/program/window.h"
#include "model/graph/graph_builder.h"
#include "model/integer/integer_vit.h"

/// Convolutional layers of a graph. Pictures have a row for each pixel and a column for each
/// channel (NHWC).
namespace systole::model {

/// A convolution with a bias and a requantisation. `linear` has its weights: for each output
/// the window's pixels, row by row, and for each of these the inputs of the output's group.
struct IntegerConvolution {
  hw::Window window;         ///< gathers patches of all channels
  std::uint32_t groups = 1;  ///< a divisor of the channels and of the outputs
  IntegerLinear linear;      ///< inputs: window.pixels() * window.channels / groups
  hw::IntRange range = hw::symmetric_range(8);  ///< of the results; from 0 on with a ReLU
  hw::DType type = hw::DType::kS8;              ///< of the results
};

/// Channels that products of several groups have at most: the columns of the usual array.
inline constexpr std::uint32_t kGroupedChannels = 16;

/// The nodes NAME, NAME.bias and NAME.requantise, and the constant NAME.weight. With groups as many
/// of them as have kGroupedChannels channels together become a product NAME.groupsI, whose weights
/// are zero outside of the blocks of the groups. The result is a separate tensor. Throws
/// InputError for counts that do not go together.
View add_convolution(GraphBuilder& builder, const std::string& name, View picture,
                     const IntegerConvolution& convolution, hw::Rounding rounding);

}  // namespace systole::model

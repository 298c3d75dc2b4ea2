#pragma once

#include <array>
#include <cstdint>

namespace systole::model {

/// A residual network as in He et al., arXiv 1512.03385, Tab. 1: a convolution of 7 x 7 pixels and
/// a pooling, four stages of residual blocks, a mean over all pixels and a linear layer. A block is
/// two convolutions of 3 x 3 pixels, or a bottleneck: 1 x 1, 3 x 3 and 1 x 1, the last with four
/// times the channels. The first convolution of a stage but the first has stride 2, as has the
/// 1 x 1 convolution of its shortcut.
struct ResNetShape {
  static constexpr std::uint32_t kExpansion = 4;  ///< of a bottleneck

  std::array<std::uint32_t, 4> blocks{};  ///< by stage; those after an empty one are empty
  bool bottleneck = false;
  std::uint32_t width = 64;   ///< channels in the blocks of the first stage; doubles by stage
  std::uint32_t image = 224;  ///< pixels of a side; a multiple of 32
  std::uint32_t channels = 3;
  std::uint32_t classes = 1000;

  /// Blocks of all stages.
  [[nodiscard]] std::uint32_t layers() const {
    return blocks[0] + blocks[1] + blocks[2] + blocks[3];
  }
  /// The first `count` blocks alone.
  [[nodiscard]] ResNetShape first(std::uint32_t count) const {
    ResNetShape shape = *this;
    for (std::uint32_t& of : shape.blocks) {
      of = of < count ? of : count;
      count -= of;
    }
    return shape;
  }
  /// Channels of the results of a stage's blocks.
  [[nodiscard]] std::uint32_t outputs(std::uint32_t stage) const {
    return (width << stage) * (bottleneck ? kExpansion : 1);
  }
  /// Weights of all layers.
  [[nodiscard]] double weights() const {
    double sum = 49.0 * channels * width, inputs = width;
    for (std::uint32_t stage = 0; stage < blocks.size(); ++stage) {
      const double inner = width << stage, outer = outputs(stage);
      for (std::uint32_t block = 0; block < blocks[stage]; ++block, inputs = outer) {
        if (inputs != outer) sum += inputs * outer;
        sum += bottleneck ? inner * (inputs + 9 * inner + outer) : 9 * inner * (inputs + outer);
      }
    }
    return sum + inputs * classes;
  }
};

}  // namespace systole::model

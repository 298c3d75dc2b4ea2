#include "analysis/resnet50.h"

namespace systole::analysis {

double Convolution::flops() const { return 2.0 * kernel * kernel * inputs * outputs * size * size; }

double Convolution::bytes() const {
  const double in = double{1} * size * stride * size * stride * inputs;
  return double{1} * kernel * kernel * inputs * outputs + in + double{1} * size * size * outputs;
}

std::vector<Convolution> resnet50() {
  struct Stage {
    std::uint32_t width, blocks, size;
  };
  std::vector<Convolution> layers = {{7, 3, 64, 112, 2, 1}};
  std::uint32_t inputs = 64;  // behind the pooling
  for (const Stage& stage : {Stage{64, 3, 56}, {128, 4, 28}, {256, 6, 14}, {512, 3, 7}}) {
    const std::uint32_t stride = inputs == 64 ? 1 : 2;
    const std::uint32_t outputs = 4 * stage.width;
    layers.push_back({1, inputs, outputs, stage.size, stride, 1});  // shortcut
    layers.push_back({1, inputs, stage.width, stage.size, stride, 1});
    layers.push_back({1, outputs, stage.width, stage.size, 1, stage.blocks - 1});
    layers.push_back({3, stage.width, stage.width, stage.size, 1, stage.blocks});
    layers.push_back({1, stage.width, outputs, stage.size, 1, stage.blocks});
    inputs = outputs;
  }
  return layers;
}

}  // namespace systole::analysis

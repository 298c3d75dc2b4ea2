#include "reproduce/study/resnet50.h"

#include <utility>

namespace systole::analysis {
namespace {

struct Stage {
  std::uint32_t width, blocks, size;
  [[nodiscard]] std::uint32_t outputs() const { return 4 * width; }
  /// Results of one of its blocks.
  [[nodiscard]] double results() const { return double{1} * outputs() * size * size; }
};
constexpr Stage kStages[] = {{64, 3, 56}, {128, 4, 28}, {256, 6, 14}, {512, 3, 7}};

}  // namespace

double Convolution::flops() const { return 2.0 * kernel * kernel * inputs * outputs * size * size; }

double Convolution::bytes() const {
  const double in = double{1} * size * stride * size * stride * inputs;
  return double{1} * kernel * kernel * inputs * outputs + in + double{1} * size * size * outputs;
}

std::vector<Convolution> resnet50() {
  std::vector<Convolution> layers = {{7, 3, 64, 112, 2, 1}};
  std::uint32_t inputs = 64;  // after the pooling
  for (const Stage& stage : kStages) {
    const std::uint32_t stride = inputs == 64 ? 1 : 2;
    const std::uint32_t outputs = stage.outputs();
    layers.push_back({1, inputs, outputs, stage.size, stride, 1});  // shortcut
    layers.push_back({1, inputs, stage.width, stage.size, stride, 1});
    layers.push_back({1, outputs, stage.width, stage.size, 1, stage.blocks - 1});
    layers.push_back({3, stage.width, stage.width, stage.size, 1, stage.blocks});
    layers.push_back({1, stage.width, outputs, stage.size, 1, stage.blocks});
    inputs = outputs;
  }
  return layers;
}

std::vector<OperatorCost> resnet50_elementwise() {
  double results = 0;  // of convolutions
  for (const Convolution& layer : resnet50()) {
    results += double{1} * layer.count * layer.size * layer.size * layer.outputs;
  }
  double sums = 0, shortcuts = 0;  // results of residual additions, of convolutions beside them
  for (const Stage& stage : kStages) {
    sums += stage.blocks * stage.results();
    shortcuts += stage.results();
  }
  // A block's last convolution and its shortcut are added before the ReLU, the others have their
  // own.
  const double rectified = results - shortcuts;
  constexpr double kClasses = 1000, kLastFeatures = 2048, kWindow = 9;
  constexpr double kPoolIn = 64.0 * 112 * 112, kPoolOut = 64.0 * 56 * 56;
  constexpr double kMeanIn = kLastFeatures * 7 * 7;
  const double normalised = kBatchNormOperations * results;
  OperatorCost batch_norm{"BatchNorm", OperatorClass::kOther, 0, normalised, normalised, results};
  OperatorCost relu{"ReLU", OperatorClass::kOther, 0, rectified, 2 * rectified, rectified};
  OperatorCost other{"other", OperatorClass::kOther};
  other.macs = kLastFeatures * kClasses;
  other.flops = sums + (kWindow - 1) * kPoolOut + kMeanIn + 2 * kLastFeatures * kClasses;
  other.bytes = 3 * sums + kPoolIn + kPoolOut + kMeanIn + kLastFeatures + kLastFeatures * kClasses +
                kLastFeatures + kClasses;
  return {std::move(batch_norm), std::move(relu), std::move(other)};
}

}  // namespace systole::analysis

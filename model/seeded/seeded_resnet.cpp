#include "model/seeded/seeded_resnet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "model/build/convolution_nodes.h"
#include "model/build/linear_nodes.h"
#include "model/graph/stages.h"
#include "model/seeded/seeded_constants.h"

namespace systole::model {
namespace {

/// The sum of a branch and an identity of codes that deviate by kOperandDeviation has about twice
/// the variance; half of it is cut off by the ReLU.
constexpr double kSumFactor = 0.75;
constexpr double kLogitDeviation = 8192.0;
constexpr hw::IntRange kRectified{0, 127};

class SeededResNet {
 public:
  SeededResNet(const std::string& name, const ResNetShape& shape, std::uint64_t seed,
               const hw::Machine::Datapath& datapath, bool with_weights)
      : shape_(shape),
        seed_(seed),
        rounding_(datapath.rounding),
        with_weights_(with_weights),
        quantiser_(name, datapath.multiplier_bits, true),
        builder_(name) {}

  Graph run() {
    Tensor picture;
    picture.name = "picture";
    picture.rows = shape_.image * shape_.image;
    picture.cols = shape_.channels;
    picture.kind = Tensor::Kind::kInput;
    picture.scale = 1.0 / kOperandDeviation;
    at_ = {builder_.whole(builder_.add_tensor(std::move(picture))), shape_.image, shape_.channels,
           kOperandDeviation};
    at_ = convolution("conv1", at_, {7, 2, shape_.width, true});
    maximum();
    for (std::uint32_t stage = 0; stage < shape_.blocks.size(); ++stage) {
      for (std::uint32_t block = 0; block < shape_.blocks[stage]; ++block) {
        add_block(stage, block);
      }
    }
    classify();
    return std::move(builder_).take();
  }

 private:
  /// Pictures between the layers: square, codes deviate by `deviation` about zero.
  struct Picture {
    View view;
    std::uint32_t side = 0, channels = 0;
    double deviation = 0;
  };
  struct Layer {
    std::uint32_t kernel, stride, outputs;
    bool relu;
  };

  IntegerLinear linear(const std::string& name, std::uint64_t inputs, std::uint32_t outputs,
                       double in, double out) {
    return seeded_linear(quantiser_, {name, seed_, layers_++, with_weights_, true},
                         static_cast<std::uint32_t>(inputs), outputs, in, out);
  }

  Picture convolution(const std::string& name, const Picture& from, const Layer& layer) {
    IntegerConvolution of;
    of.window.kernel_rows = of.window.kernel_cols = static_cast<std::uint16_t>(layer.kernel);
    of.window.stride = static_cast<std::uint16_t>(layer.stride);
    of.window.padding = hw::Padding::on_all_sides(static_cast<std::uint8_t>(layer.kernel / 2));
    of.window.height = of.window.width = from.side;
    of.window.channels = from.channels;
    of.linear = linear(name, of.window.cols(), layer.outputs, from.deviation, kOperandDeviation);
    if (layer.relu) of.range = kRectified;
    const View result = add_convolution(builder_, name, from.view, of, rounding_);
    return {result, static_cast<std::uint32_t>(of.window.out_width()), layer.outputs,
            layer.relu ? kReluDeviation * kOperandDeviation : kOperandDeviation};
  }

  void maximum() {
    hw::Window window;
    window.gather = hw::Gather::kMaximum;
    window.kernel_rows = window.kernel_cols = 3;
    window.stride = 2;
    window.padding = hw::Padding::on_all_sides(1);
    window.height = window.width = at_.side;
    window.channels = at_.channels;
    at_.view =
        builder_.pooling("pool1", at_.view, window, clamp_stage(kOperandBits), hw::DType::kS8);
    at_.side = static_cast<std::uint32_t>(window.out_width());
  }

  void add_block(std::uint32_t stage, std::uint32_t block) {
    const std::string prefix = "s" + std::to_string(stage + 1) + "." + std::to_string(block);
    const std::uint32_t stride = stage != 0 && block == 0 ? 2 : 1;
    const std::uint32_t width = shape_.width << stage, outputs = shape_.outputs(stage);
    Picture branch = at_, identity = at_;
    if (shape_.bottleneck) {
      branch = convolution(prefix + ".conv1", branch, {1, stride, width, true});
      branch = convolution(prefix + ".conv2", branch, {3, 1, width, true});
    } else {
      branch = convolution(prefix + ".conv1", branch, {3, stride, width, true});
    }
    if (stride != 1 || at_.channels != outputs) {
      identity = convolution(prefix + ".shortcut", at_, {1, stride, outputs, false});
    }
    // The last one next to the sum, whose chain it may begin.
    branch = shape_.bottleneck ? convolution(prefix + ".conv3", branch, {1, 1, outputs, false})
                               : convolution(prefix + ".conv2", branch, {3, 1, outputs, false});
    const std::string name = prefix + ".residual";
    const View sum = builder_.stage(name, branch.view,
                                    add_tensor_stage(hw::DType::kS8, {}, kBranchBits, rounding_),
                                    hw::DType::kS32, {{}, identity.view});
    hw::Stage rectify =
        requantise_stage(quantiser_.factor(name, kSumFactor), kOperandBits, rounding_);
    rectify.imm[2] = kRectified.lo;
    at_ = branch;
    at_.view = builder_.stage(name + ".requantise", sum, rectify, hw::DType::kS8);
    at_.deviation = kReluDeviation * kOperandDeviation;
  }

  void classify() {
    hw::Window window;
    window.gather = hw::Gather::kSum;
    window.kernel_rows = window.kernel_cols = static_cast<std::uint16_t>(at_.side);
    window.height = window.width = at_.side;
    window.channels = at_.channels;
    const hw::Dyadic mean =
        quantiser_.factor("pool2", kMeanGain / static_cast<double>(window.pixels()));
    const View pooled = builder_.pooling(
        "pool2", at_.view, window, requantise_stage(mean, kOperandBits, rounding_), hw::DType::kS8);
    const View logits = linear_product(
        builder_, "fc", pooled,
        linear("fc", at_.channels, shape_.classes, kOperandDeviation, kLogitDeviation));
    builder_.tensor(logits.tensor).kind = Tensor::Kind::kOutput;
  }

  const ResNetShape shape_;
  const std::uint64_t seed_;
  const hw::Rounding rounding_;
  const bool with_weights_;
  LayerQuantiser quantiser_;
  GraphBuilder builder_;
  Picture at_;
  std::uint32_t layers_ = 0;  ///< made so far
};

void check_shape(const std::string& name, const ResNetShape& shape) {
  const auto require = [&](bool holds, const char* what) {
    if (!holds) throw hw::InputError(name + ": " + what);
  };
  require(shape.blocks[0] != 0 && shape.width != 0 && shape.channels != 0 && shape.classes != 0,
          "a count is 0, expected 1 or more");
  for (std::size_t i = 1; i < shape.blocks.size(); ++i) {
    require(shape.blocks[i] == 0 || shape.blocks[i - 1] != 0,
            "blocks after a stage without any, expected none");
  }
  require(shape.image != 0 && shape.image % 32 == 0 && shape.image <= hw::kMaxWindowSide * 4,
          "a picture whose side is no multiple of 32 pixels, or longer than 1020");
}

}  // namespace

const std::vector<NamedResNet>& resnet_shapes() {
  // arXiv 1512.03385, Tab. 1.
  static const std::vector<NamedResNet> shapes = {{"resnet-18", {{2, 2, 2, 2}, false}},
                                                  {"resnet-50", {{3, 4, 6, 3}, true}}};
  return shapes;
}

const ResNetShape* find_resnet_shape(std::string_view name) {
  for (const NamedResNet& resnet : resnet_shapes()) {
    if (resnet.name == name) return &resnet.shape;
  }
  return nullptr;
}

Graph make_seeded_resnet(const std::string& name, const ResNetShape& shape, std::uint64_t seed,
                         const hw::Machine::Datapath& datapath, bool with_weights) {
  check_shape(name, shape);
  return SeededResNet(name, shape, seed, datapath, with_weights).run();
}

std::vector<std::int32_t> seeded_picture(const ResNetShape& shape, std::uint64_t seed) {
  SeededNumbers numbers(seed, SeedPurpose::kInput, 0);
  std::vector<std::int32_t> values(std::size_t{shape.image} * shape.image * shape.channels);
  for (std::int32_t& value : values) {
    value = std::clamp(static_cast<std::int32_t>(std::nearbyint(numbers.normal(kOperandDeviation))),
                       -127, 127);
  }
  return values;
}

}  // namespace systole::model

#include "model/build/convolution_nodes.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/build/linear_nodes.h"
#include "model/graph/stages.h"

namespace systole::model {
namespace {

/// Weights of `groups` groups from `first` on as the array reads them, [pixels x inputs x outputs]
/// of all of them: zero but for the blocks of the groups.
std::vector<std::uint8_t> block_weights(const IntegerConvolution& convolution, std::uint32_t first,
                                        std::uint32_t groups) {
  const IntegerLinear& linear = convolution.linear;
  if (linear.weight.empty()) return {};
  const std::size_t pixels = convolution.window.pixels();
  const std::size_t ins = convolution.window.channels / convolution.groups;
  const std::size_t outs = linear.outputs / convolution.groups;
  std::vector<std::uint8_t> data(pixels * ins * groups * outs * groups, 0);
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t o = 0; o < outs; ++o) {
      const std::int8_t* from = &linear.weight[((first + g) * outs + o) * linear.inputs];
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        for (std::size_t i = 0; i < ins; ++i, ++from) {
          const std::size_t row = (pixel * groups + g) * ins + i;
          data[row * outs * groups + g * outs + o] = static_cast<std::uint8_t>(*from);
        }
      }
    }
  }
  return data;
}

void check(const std::string& name, const IntegerConvolution& convolution) {
  const hw::Window& window = convolution.window;
  const IntegerLinear& linear = convolution.linear;
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw hw::InputError(name + ": " + what);
  };
  hw::check_window(window);
  require(convolution.groups != 0 && window.channels % convolution.groups == 0 &&
              linear.outputs % convolution.groups == 0,
          std::to_string(convolution.groups) + " groups of " + std::to_string(window.channels) +
              " channels and " + std::to_string(linear.outputs) + " outputs, expected a divisor");
  const std::uint64_t inputs = window.pixels() * window.channels / convolution.groups;
  require(linear.inputs == inputs,
          std::to_string(linear.inputs) + " weights an output, expected " + std::to_string(inputs));
}

}  // namespace

View add_convolution(GraphBuilder& builder, const std::string& name, View picture,
                     const IntegerConvolution& convolution, hw::Rounding rounding) {
  check(name, convolution);
  const std::uint32_t ins = convolution.window.channels / convolution.groups;
  const std::uint32_t outs = convolution.linear.outputs / convolution.groups;
  const std::uint32_t step =
      convolution.groups == 1 ? 1 : std::max(1U, kGroupedChannels / std::max(ins, outs));
  Tensor result;
  result.name = name + ".requantise";
  result.rows = static_cast<std::uint32_t>(convolution.window.rows());
  result.cols = convolution.linear.outputs;
  result.type = convolution.type;
  result.int4 = convolution.type == hw::DType::kS8 && convolution.range.lo >= hw::kLeastInt4 &&
                convolution.range.hi <= hw::kLargestInt4;
  const View whole = builder.whole(builder.add_tensor(std::move(result)));
  for (std::uint32_t first = 0; first < convolution.groups; first += step) {
    const std::uint32_t groups = std::min(step, convolution.groups - first);
    const std::string part =
        convolution.groups == 1 ? name : name + ".groups" + std::to_string(first / step);
    hw::Window window = convolution.window;
    window.channels = ins * groups;
    Tensor weight;
    weight.name = part + ".weight";
    weight.rows = static_cast<std::uint32_t>(window.cols());
    weight.cols = outs * groups;
    weight.kind = Tensor::Kind::kConstant;
    weight.data = block_weights(convolution, first, groups);
    weight.int4 = convolution.linear.int4;
    const View b = builder.whole(builder.add_tensor(std::move(weight)));
    View sums = builder.convolution(part, columns_of(picture, first * ins, ins * groups), window, b,
                                    groups);
    const IntegerLinear layer = outputs_of(convolution.linear, first * outs, outs * groups);
    if (!layer.bias.empty()) {
      sums = builder.stage(part + ".bias", sums, bias_stage(), hw::DType::kS32, {layer.bias, {}});
    }
    hw::Stage requantise = factor_stage(layer, kOperandBits, rounding);
    requantise.imm[2] = convolution.range.lo;
    requantise.imm[3] = convolution.range.hi;
    builder.stage_to(part + ".requantise", sums, requantise,
                     columns_of(whole, first * outs, outs * groups),
                     {factor_parameters(layer), {}});
  }
  return whole;
}

}  // namespace systole::model

#include "model/build/linear_nodes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "hw/function/softmax.h"
#include "hw/number/softmax_mode.h"
#include "model/graph/stages.h"
#include "model/integer/row_scales.h"

namespace systole::model {
namespace {

/// Layers with one factor for all channels take no room in the parameter block.
bool has_one_factor(const IntegerLinear& layer) {
  return std::all_of(layer.factor.begin(), layer.factor.end(),
                     [&](hw::Dyadic f) { return f == layer.factor.front(); });
}

std::vector<std::uint8_t> transposed(const std::int8_t* weight, std::size_t outputs,
                                     std::size_t inputs) {
  constexpr std::size_t kBlock = 64;
  std::vector<std::uint8_t> data(outputs * inputs);
  // Rows of either form that are far apart share the lines of a cache: a block is copied first.
  std::array<std::uint8_t, kBlock * kBlock> block;
  for (std::size_t o0 = 0; o0 < outputs; o0 += kBlock) {
    const std::size_t rows = std::min(kBlock, outputs - o0);
    for (std::size_t i0 = 0; i0 < inputs; i0 += kBlock) {
      const std::size_t cols = std::min(kBlock, inputs - i0);
      for (std::size_t o = 0; o < rows; ++o) {
        std::memcpy(&block[o * kBlock], &weight[(o0 + o) * inputs + i0], cols);
      }
      for (std::size_t i = 0; i < cols; ++i) {
        std::uint8_t* const to = &data[(i0 + i) * outputs + o0];
        for (std::size_t o = 0; o < rows; ++o) to[o] = block[o * kBlock + i];
      }
    }
  }
  return data;
}

hw::SharedVector<hw::WeightGroup> transposed_groups(const IntegerLinear& layer) {
  const std::size_t of_output = layer.inputs / hw::kGroupWeights;
  std::vector<hw::WeightGroup> groups(layer.groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i] = layer.groups[i % layer.outputs * of_output + i / layer.outputs];
  }
  return groups;
}

}  // namespace

hw::SharedVector<std::uint8_t> transposed_weight(const IntegerLinear& layer) {
  using Bytes = hw::SharedVector<std::uint8_t>;
  return Bytes::deferred(
      layer.weight.size(),
      [weight = layer.weight, outputs = layer.outputs, inputs = layer.inputs] {
        std::vector<std::uint8_t> data = transposed(weight.hold().get(), outputs, inputs);
        weight.let_go();
        return data;
      },
      layer.weight.is_view() ? layer.weight.as<std::uint8_t>() : Bytes());
}

hw::Stage factor_stage(const IntegerLinear& layer, unsigned bits, hw::Rounding rounding) {
  return has_one_factor(layer) ? requantise_stage(layer.factor.front(), bits, rounding)
                               : channel_requantise_stage(bits, rounding);
}

std::vector<std::int32_t> factor_parameters(const IntegerLinear& layer) {
  std::vector<std::int32_t> words;
  if (has_one_factor(layer)) return words;
  words.reserve(2 * layer.factor.size());
  for (const hw::Dyadic& factor : layer.factor) words.push_back(factor.multiplier);
  for (const hw::Dyadic& factor : layer.factor) words.push_back(factor.shift);
  return words;
}

IntegerLinear outputs_of(const IntegerLinear& layer, std::uint32_t first, std::uint32_t count) {
  const auto slice = [](const auto& values, std::size_t from, std::size_t size) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(from);
    return std::decay_t<decltype(values)>(begin, begin + static_cast<std::ptrdiff_t>(size));
  };
  IntegerLinear part;
  part.inputs = layer.inputs;
  part.outputs = count;
  if (!layer.weight.empty()) {
    part.weight =
        layer.weight.part(std::size_t{first} * layer.inputs, std::size_t{count} * layer.inputs);
  }
  part.format = layer.format;
  part.int4 = layer.int4;
  if (!layer.groups.empty()) {
    const std::size_t of_output = layer.inputs / hw::kGroupWeights;
    part.groups = slice(layer.groups, first * of_output, count * of_output);
  }
  if (!layer.bias.empty()) part.bias = slice(layer.bias, first, count);
  part.factor = slice(layer.factor, first, count);
  return part;
}

View linear_product(GraphBuilder& builder, const std::string& name, View in,
                    const IntegerLinear& layer) {
  Tensor weight;
  weight.name = name + ".weight";
  weight.rows = layer.inputs;
  weight.cols = layer.outputs;
  weight.kind = Tensor::Kind::kConstant;
  weight.data = transposed_weight(layer);
  weight.format = layer.format;
  weight.int4 = layer.int4 && !layer.grouped();  // groups become int8 as they are loaded
  weight.groups = transposed_groups(layer);
  const View b = builder.whole(builder.add_tensor(std::move(weight)));
  const View product = builder.matmul(name, in, b, false);
  if (layer.bias.empty()) return product;
  return builder.stage(name + ".bias", product, bias_stage(), hw::DType::kS32, {layer.bias, {}});
}

TensorId add_peaks(GraphBuilder& builder, const std::string& name, std::uint32_t rows) {
  Tensor peaks;
  peaks.name = name + ".peaks";
  peaks.rows = rows;
  peaks.cols = 1;
  peaks.type = hw::DType::kS32;
  return builder.add_tensor(std::move(peaks));
}

ProductInput row_codes(GraphBuilder& builder, const std::string& name, View in, TensorId peaks,
                       unsigned bits) {
  const View codes =
      builder.stage(name + ".codes", in, quantise_row_stage(), hw::DType::kS8, {{}, {}, peaks});
  return {codes, peaks, bits};
}

ProductInput peaked_codes(GraphBuilder& builder, const std::string& name, View in) {
  const TensorId peaks = add_peaks(builder, name, in.rows);
  hw::Stage stage = clamp_stage(kWideBits);
  stage.side = hw::Reduction::kRowPeak;
  const View peaked = builder.stage(name + ".peak", in, stage, hw::DType::kS16, {{}, {}, peaks});
  return row_codes(builder, name, peaked, peaks, kWideBits);
}

View scaled_rows(GraphBuilder& builder, const std::string& name, View product,
                 const ProductInput& in, hw::Rounding rounding) {
  if (in.peaks == kNoTensor) return product;
  const unsigned shift = row_scale_shift(in.codes.cols, in.bits);
  return builder.stage(name + ".scale", product, scale_row_stage(shift, rounding), hw::DType::kS32,
                       {{}, {}, in.peaks});
}

View linear_sums(GraphBuilder& builder, const std::string& name, const ProductInput& in,
                 const IntegerLinear& layer, hw::Rounding rounding) {
  if (in.peaks == kNoTensor) return linear_product(builder, name, in.codes, layer);
  IntegerLinear unbiased = layer;
  unbiased.bias.clear();
  const View sum =
      scaled_rows(builder, name, linear_product(builder, name, in.codes, unbiased), in, rounding);
  if (layer.bias.empty()) return sum;
  return builder.stage(name + ".bias", sum, bias_stage(), hw::DType::kS32, {layer.bias, {}});
}

View columns_of(View view, std::uint32_t first, std::uint32_t count) {
  view.col += first;
  view.cols = count;
  return view;
}

View rows_of_part(View view, std::uint32_t index, std::uint32_t count) {
  view.rows /= count;
  view.row += index * view.rows;
  return view;
}

void add_attention_head(GraphBuilder& builder, const std::string& prefix,
                        const hw::Machine::Datapath& datapath, const AttentionHead& head) {
  const bool deferred = datapath.softmax == hw::SoftmaxMode::kDeferred;
  TensorId row_sum = kNoTensor;
  if (deferred) {
    Tensor tensor;
    tensor.name = prefix + "row_sum";
    tensor.rows = head.query.rows;
    tensor.cols = 1;
    tensor.type = hw::DType::kS32;
    row_sum = builder.add_tensor(std::move(tensor));
  }
  View scores = builder.matmul(prefix + "scores", head.query, head.key, true);
  if (head.pruned.tensor != kNoTensor) {
    scores =
        builder.stage(prefix + "mask", scores,
                      add_tensor_stage(hw::DType::kS8, head.prune, kBranchBits, datapath.rounding),
                      hw::DType::kS32, {{}, head.pruned});
  }
  const View probabilities =
      builder.stage(prefix + "softmax", scores,
                    softmax_stage(datapath, head.score, hw::kScoreFractionBits, head.exp_to_code),
                    hw::DType::kU8, {{}, {}, row_sum, head.causal ? 1U : 0U});
  View mean = builder.matmul(prefix + "context", probabilities, head.value, false);
  if (deferred) {
    mean = builder.stage(prefix + "divide", mean, divide_row_sum_stage(), hw::DType::kS32,
                         {{}, {}, row_sum});
  }
  const bool wide = builder.tensor(head.context.tensor).type == hw::DType::kS16;
  builder.stage_to(
      prefix + "requantise", mean,
      requantise_stage(head.context_factor, wide ? kWideBits : kOperandBits, datapath.rounding),
      head.context);
}

}  // namespace systole::model

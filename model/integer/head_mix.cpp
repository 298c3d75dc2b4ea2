#include "model/integer/head_mix.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.h"

namespace systole::model {
namespace {

/// Shape, weight and bias; Layer is FloatLinear or IntegerLinear.
template <typename Layer>
Layer expand(const Layer& coefficients, std::uint32_t head_width) {
  Layer layer;
  layer.inputs = coefficients.inputs * head_width;
  layer.outputs = coefficients.outputs * head_width;
  std::vector<typename decltype(layer.weight)::value_type> weight(std::size_t{layer.outputs} *
                                                                  layer.inputs);
  layer.bias.resize(layer.outputs);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    const std::size_t out_head = o / head_width;
    layer.bias[o] = coefficients.bias[out_head];
    for (std::size_t h = 0; h < coefficients.inputs; ++h) {
      weight[o * layer.inputs + h * head_width + o % head_width] =
          coefficients.weight[out_head * coefficients.inputs + h];
    }
  }
  layer.weight = std::move(weight);
  return layer;
}

/// Appends outer(inner), where `inner` is `outer.inputs` rows of `qkv` from `first`.
void append_composed(FloatLinear& to, const FloatLinear& outer, const FloatLinear& qkv,
                     std::size_t first) {
  for (std::size_t o = 0; o < outer.outputs; ++o) {
    const double* factors = outer.weight.data() + o * outer.inputs;
    double bias = outer.bias[o];
    std::vector<double> row(qkv.inputs, 0.0);
    for (std::size_t j = 0; j < outer.inputs; ++j) {
      bias += factors[j] * qkv.bias[first + j];
      const double* inner = qkv.weight.data() + (first + j) * qkv.inputs;
      for (std::size_t i = 0; i < qkv.inputs; ++i) row[i] += factors[j] * inner[i];
    }
    to.weight.insert(to.weight.end(), row.begin(), row.end());
    to.bias.push_back(bias);
  }
  to.outputs += outer.outputs;
}

}  // namespace

FloatLinear across_heads(const FloatLinear& coefficients, std::uint32_t head_width) {
  return expand(coefficients, head_width);
}

IntegerLinear across_heads(const IntegerLinear& coefficients, std::uint32_t head_width) {
  IntegerLinear layer = expand(coefficients, head_width);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    layer.factor.push_back(coefficients.factor[o / head_width]);
  }
  return layer;
}

VitCheckpoint fold_encoders(const VitCheckpoint& checkpoint) {
  const EncoderShape& shape = checkpoint.shape.encoder;
  if (shape.latent_heads == 0) {
    throw hw::InputError(checkpoint.path +
                         ": folding the encoder: the attention has no auto-encoder");
  }
  VitCheckpoint folded = checkpoint;
  for (FloatBlock& block : folded.blocks) {
    FloatLinear qkv;
    qkv.inputs = shape.width;
    append_composed(qkv, across_heads(block.query_link.encoder, shape.head_width()), block.qkv, 0);
    append_composed(qkv, across_heads(block.key_link.encoder, shape.head_width()), block.qkv,
                    shape.width);
    const std::size_t value = 2 * std::size_t{shape.width};
    qkv.weight.insert(qkv.weight.end(),
                      block.qkv.weight.begin() + static_cast<std::ptrdiff_t>(value * shape.width),
                      block.qkv.weight.end());
    qkv.bias.insert(qkv.bias.end(), block.qkv.bias.begin() + static_cast<std::ptrdiff_t>(value),
                    block.qkv.bias.end());
    qkv.outputs += shape.width;
    block.qkv = qkv;
    block.query_link.encoder = {};
    block.key_link.encoder = {};
  }
  return folded;
}

}  // namespace systole::model

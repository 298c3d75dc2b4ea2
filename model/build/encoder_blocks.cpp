#include "model/build/encoder_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "hw/function/layernorm.h"
#include "hw/number/softmax_mode.h"
#include "model/checkpoint/keep_mask.h"
#include "model/graph/stages.h"
#include "model/integer/head_mix.h"

namespace systole::model {
namespace {

constexpr unsigned kOperandBits = 8;

/// Layers with one factor for all channels take no room in the parameter block.
bool has_one_factor(const IntegerLinear& layer) {
  return std::all_of(layer.factor.begin(), layer.factor.end(),
                     [&](hw::Dyadic f) { return f == layer.factor.front(); });
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

std::vector<std::int32_t> norm_parameters(const IntegerLayerNorm& norm) {
  std::vector<std::int32_t> words = norm.multiplier;
  words.insert(words.end(), norm.addend.begin(), norm.addend.end());
  return words;
}

View columns(View view, std::uint32_t first, std::uint32_t count) {
  view.col += first;
  view.cols = count;
  return view;
}

/// `count` outputs of a layer, from `first` on.
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
        slice(layer.weight, std::size_t{first} * layer.inputs, std::size_t{count} * layer.inputs);
  }
  part.bias = slice(layer.bias, first, count);
  part.factor = slice(layer.factor, first, count);
  return part;
}

/// Part `index` of `count` equal ones.
View part(View view, std::uint32_t index, std::uint32_t count) {
  view.rows /= count;
  view.row += index * view.rows;
  return view;
}

}  // namespace

std::vector<std::uint8_t> transposed_weight(const IntegerLinear& layer) {
  constexpr std::size_t kBlock = 64;
  const std::size_t inputs = layer.inputs;
  const std::size_t outputs = layer.outputs;
  std::vector<std::uint8_t> data(layer.weight.size());
  if (data.empty()) return data;
  // Rows of either form that are far apart share the lines of a cache: a block is copied first.
  std::array<std::uint8_t, kBlock * kBlock> block;
  for (std::size_t o0 = 0; o0 < outputs; o0 += kBlock) {
    const std::size_t rows = std::min(kBlock, outputs - o0);
    for (std::size_t i0 = 0; i0 < inputs; i0 += kBlock) {
      const std::size_t cols = std::min(kBlock, inputs - i0);
      for (std::size_t o = 0; o < rows; ++o) {
        std::memcpy(&block[o * kBlock], &layer.weight[(o0 + o) * inputs + i0], cols);
      }
      for (std::size_t i = 0; i < cols; ++i) {
        std::uint8_t* const to = &data[(i0 + i) * outputs + o0];
        for (std::size_t o = 0; o < rows; ++o) to[o] = block[o * kBlock + i];
      }
    }
  }
  return data;
}

hw::DType EncoderBlocks::residual_type() const {
  return residual_bits() <= 16 ? hw::DType::kS16 : hw::DType::kS32;
}

EncoderBlocks::EncoderBlocks(GraphBuilder& builder, const IntegerEncoder& encoder, Rows rows)
    : builder_(builder), encoder_(encoder), rows_(rows) {
  const bool masked = std::any_of(encoder.blocks.begin(), encoder.blocks.end(),
                                  [](const IntegerBlock& block) { return !block.keep.empty(); });
  if (rows.cache != 0 && (!encoder.shape.causal || encoder.shape.latent_heads != 0 || masked)) {
    throw std::invalid_argument(
        "cache of keys and values: expected causal layers without masks and auto-encoder");
  }
}

View EncoderBlocks::input(const std::string& name, std::uint32_t rows, hw::DType type,
                          double scale) {
  Tensor tensor;
  tensor.name = name;
  tensor.rows = rows;
  tensor.cols = encoder_.shape.width;
  tensor.type = type;
  tensor.kind = Tensor::Kind::kInput;
  tensor.scale = scale;
  return builder_.whole(builder_.add_tensor(std::move(tensor)));
}

View EncoderBlocks::product(const std::string& name, View in, const IntegerLinear& layer) {
  Tensor weight;
  weight.name = name + ".weight";
  weight.rows = layer.inputs;
  weight.cols = layer.outputs;
  weight.kind = Tensor::Kind::kConstant;
  weight.data = transposed_weight(layer);
  const View b = builder_.whole(builder_.add_tensor(std::move(weight)));
  const View product = builder_.matmul(name, in, b, false);
  return builder_.stage(name + ".bias", product, bias_stage(), hw::DType::kS32, {layer.bias, {}});
}

View EncoderBlocks::linear(const std::string& name, View in, const IntegerLinear& layer,
                           unsigned bits, hw::DType type) {
  const View sum = product(name, in, layer);
  return builder_.stage(name + ".requantise", sum, factor_stage(layer, bits, rounding()), type,
                        {factor_parameters(layer), {}});
}

void EncoderBlocks::linear_to(const std::string& name, View in, const IntegerLinear& layer,
                              unsigned bits, View out) {
  const View sum = product(name, in, layer);
  builder_.stage_to(name + ".requantise", sum, factor_stage(layer, bits, rounding()), out,
                    {factor_parameters(layer), {}});
}

View EncoderBlocks::layer_norm(const std::string& name, View in, const IntegerLayerNorm& norm) {
  const View out = builder_.stage(
      name, in, layer_norm_stage(hw::kLayerNormFractionBits, norm.shift, kOperandBits),
      hw::DType::kS8, {norm_parameters(norm), {}});
  builder_.tensor(out.tensor).scale = norm.scale;
  return out;
}

View EncoderBlocks::block(std::uint32_t index, View in) {
  const IntegerBlock& block = encoder_.blocks.at(index);
  const std::string prefix = "blocks." + std::to_string(index) + ".";
  const bool post = encoder_.shape.post_norm;

  const View attended =
      attention(prefix + "attn.", post ? in : layer_norm(prefix + "norm1", in, block.norm1), block);
  View stream = add_residual(prefix + "attn.proj", prefix + "attn.residual", attended, in,
                             block.attention_identity, block.scales.attention_residual);
  if (post) stream = layer_norm(prefix + "norm1", stream, block.norm1);

  const View transformed = mlp(
      prefix + "mlp.", post ? stream : layer_norm(prefix + "norm2", stream, block.norm2), block);
  stream = add_residual(prefix + "mlp.fc2", prefix + "mlp.residual", transformed, stream,
                        block.mlp_identity, block.scales.mlp_residual);
  return post ? layer_norm(prefix + "norm2", stream, block.norm2) : stream;
}

EncoderBlocks::Projections EncoderBlocks::project(const std::string& prefix, View in,
                                                  const IntegerBlock& block) {
  const std::uint32_t query_width = encoder_.query_width();
  const View qkv = linear(prefix + "qkv", in, block.qkv, kOperandBits, hw::DType::kS8);
  Projections result{columns(qkv, 0, query_width), columns(qkv, query_width, query_width),
                     columns(qkv, 2 * query_width, encoder_.shape.width)};
  if (encoder_.shape.latent_heads != 0) {
    result.query = link(prefix, "q", result.query, block.query_link);
    result.key = link(prefix, "k", result.key, block.key_link);
  }
  return result;
}

EncoderBlocks::Projections EncoderBlocks::project_to_cache(const std::string& prefix, View in,
                                                           const IntegerBlock& block) {
  const std::uint32_t width = encoder_.shape.width;
  Tensor tensor;
  tensor.name = prefix + "cache";
  tensor.rows = rows_.cache;
  tensor.cols = 2 * width;
  tensor.kind = Tensor::Kind::kState;
  const View cache = builder_.whole(builder_.add_tensor(std::move(tensor)));
  const View query =
      linear(prefix + "q", in, outputs_of(block.qkv, 0, width), kOperandBits, hw::DType::kS8);
  linear_to(prefix + "kv", in, outputs_of(block.qkv, width, 2 * width), kOperandBits,
            part(cache, rows_.cache - 1, rows_.cache));
  return {query, columns(cache, 0, width), columns(cache, width, width)};
}

View EncoderBlocks::attention(const std::string& prefix, View in, const IntegerBlock& block) {
  const std::uint32_t width = encoder_.shape.width;
  const std::uint32_t head_width = encoder_.shape.head_width();
  const auto [query, key, value] =
      rows_.cache == 0 ? project(prefix, in, block) : project_to_cache(prefix, in, block);

  Tensor tensor;
  tensor.name = prefix + "context";
  tensor.rows = in.rows;
  tensor.cols = width;
  tensor.scale = block.scales.context;
  const View context = builder_.whole(builder_.add_tensor(std::move(tensor)));
  for (std::uint32_t s = 0; s < rows_.sequences; ++s) {
    const std::string sequence =
        rows_.sequences == 1 ? prefix : prefix + "seq" + std::to_string(s) + ".";
    for (std::uint32_t h = 0; h < encoder_.shape.heads; ++h) {
      const auto of_head = [&](View view) {
        return part(columns(view, h * head_width, head_width), s, rows_.sequences);
      };
      head(sequence + "head" + std::to_string(h) + ".", h, of_head(query), of_head(key),
           of_head(value), of_head(context), block);
    }
  }
  return linear(prefix + "proj", context, block.proj, kBranchBits, hw::DType::kS32);
}

View EncoderBlocks::link(const std::string& prefix, const std::string& operand, View in,
                         const IntegerHeadMix& link) {
  const std::uint32_t head_width = encoder_.shape.head_width();
  View latent = in;
  if (!encoder_.folded_encoders) {
    latent = linear(prefix + "encoder_" + operand, in, across_heads(link.encoder, head_width),
                    kOperandBits, hw::DType::kS8);
    builder_.tensor(latent.tensor).scale = link.latent_scale;
  }
  const View decoded = linear(prefix + "decoder_" + operand, latent,
                              across_heads(link.decoder, head_width), kOperandBits, hw::DType::kS8);
  builder_.tensor(decoded.tensor).scale = link.scale;
  return decoded;
}

View EncoderBlocks::masked(const std::string& prefix, std::uint32_t index, View scores,
                           const IntegerBlock& block) {
  if (block.keep.empty()) return scores;
  const std::size_t cells = std::size_t{scores.rows} * scores.cols;
  if (block.keep.size() != encoder_.shape.heads * cells) {
    throw std::invalid_argument(prefix + "mask: has another number of cells than the scores");
  }
  Tensor table;
  table.name = prefix + "pruned";
  table.rows = scores.rows;
  table.cols = scores.cols;
  table.kind = Tensor::Kind::kConstant;
  const auto first = block.keep.begin() + static_cast<std::ptrdiff_t>(index * cells);
  std::transform(first, first + static_cast<std::ptrdiff_t>(cells), std::back_inserter(table.data),
                 [](std::uint8_t kept) {
                   return kept != 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(kPrunedCode);
                 });
  const View pruned = builder_.whole(builder_.add_tensor(std::move(table)));
  const hw::Dyadic factor =
      prune_factor(block.score, encoder_.shape.head_width(), encoder_.datapath.multiplier_bits);
  return builder_.stage(prefix + "mask", scores,
                        add_tensor_stage(hw::DType::kS8, factor, kBranchBits, rounding()),
                        hw::DType::kS32, {{}, pruned});
}

void EncoderBlocks::head(const std::string& prefix, std::uint32_t index, View query, View key,
                         View value, View context, const IntegerBlock& block) {
  const hw::Machine::Datapath& datapath = encoder_.datapath;
  const bool deferred = datapath.softmax == hw::SoftmaxMode::kDeferred;
  // A cache holds no token after that of the row.
  const bool masks_by_position = encoder_.shape.causal && rows_.cache == 0;
  TensorId row_sum = kNoTensor;
  if (deferred) {
    Tensor tensor;
    tensor.name = prefix + "row_sum";
    tensor.rows = query.rows;
    tensor.cols = 1;
    tensor.type = hw::DType::kS32;
    row_sum = builder_.add_tensor(std::move(tensor));
  }
  const View scores =
      masked(prefix, index, builder_.matmul(prefix + "scores", query, key, true), block);
  const View probabilities = builder_.stage(
      prefix + "softmax", scores,
      softmax_stage(datapath, block.score, hw::kScoreFractionBits, encoder_.exp_to_code),
      hw::DType::kU8, {{}, {}, row_sum, masks_by_position ? 1U : 0U});
  View mean = builder_.matmul(prefix + "context", probabilities, value, false);
  if (deferred) {
    mean = builder_.stage(prefix + "divide", mean, divide_row_sum_stage(), hw::DType::kS32,
                          {{}, {}, row_sum});
  }
  builder_.stage_to(prefix + "requantise", mean,
                    requantise_stage(block.context, kOperandBits, rounding()), context);
}

View EncoderBlocks::mlp(const std::string& prefix, View in, const IntegerBlock& block) {
  const View hidden = linear(prefix + "fc1", in, block.fc1, kOperandBits, hw::DType::kS8);
  builder_.tensor(hidden.tensor).scale = block.scales.gelu_in;
  const View activated =
      builder_.stage(prefix + "gelu", hidden, gelu_stage(block.gelu, kOperandBits), hw::DType::kS8);
  builder_.tensor(activated.tensor).scale = block.scales.gelu_out;
  return linear(prefix + "fc2", activated, block.fc2, kBranchBits, hw::DType::kS32);
}

View EncoderBlocks::add_residual(const std::string& layer, const std::string& name, View branch,
                                 View identity, hw::Dyadic identity_factor, double scale) {
  const hw::DType type = builder_.tensor(identity.tensor).type;
  const View sum = builder_.stage(layer + ".add", branch,
                                  add_tensor_stage(type, identity_factor, kBranchBits, rounding()),
                                  hw::DType::kS32, {{}, identity});
  Tensor tensor;
  tensor.name = name;
  tensor.rows = branch.rows;
  tensor.cols = branch.cols;
  tensor.type = residual_type();
  tensor.scale = scale;
  const View stream = builder_.whole(builder_.add_tensor(std::move(tensor)));
  builder_.stage_to(layer + ".clamp", sum, clamp_stage(residual_bits()), stream);
  return stream;
}

}  // namespace systole::model

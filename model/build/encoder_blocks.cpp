#include "model/build/encoder_blocks.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "hw/function/layernorm.h"
#include "model/build/linear_nodes.h"
#include "model/checkpoint/keep_mask.h"
#include "model/graph/stages.h"
#include "model/integer/head_mix.h"

namespace systole::model {
namespace {

std::vector<std::int32_t> norm_parameters(const IntegerLayerNorm& norm) {
  std::vector<std::int32_t> words = norm.multiplier;
  words.insert(words.end(), norm.addend.begin(), norm.addend.end());
  return words;
}

}  // namespace

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

ProductInput EncoderBlocks::operand(const std::string& name, View in) {
  return encoder_.row_scales ? peaked_codes(builder_, name, in) : ProductInput{in};
}

View EncoderBlocks::linear(const std::string& name, const ProductInput& in,
                           const IntegerLinear& layer, unsigned bits, hw::DType type) {
  const View sum = linear_sums(builder_, name, in, layer, rounding());
  return builder_.stage(name + ".requantise", sum, factor_stage(layer, bits, rounding()), type,
                        {factor_parameters(layer), {}});
}

void EncoderBlocks::linear_to(const std::string& name, const ProductInput& in,
                              const IntegerLinear& layer, unsigned bits, View out) {
  const View sum = linear_sums(builder_, name, in, layer, rounding());
  builder_.stage_to(name + ".requantise", sum, factor_stage(layer, bits, rounding()), out,
                    {factor_parameters(layer), {}});
}

View EncoderBlocks::layer_norm(const std::string& name, View in, const IntegerLayerNorm& norm) {
  const View out = builder_.stage(
      name, in, layer_norm_stage(hw::kLayerNormFractionBits, norm.shift, operand_bits()),
      operand_type(), {norm_parameters(norm), {}});
  builder_.tensor(out.tensor).scale = norm.scale;
  return out;
}

View EncoderBlocks::block(std::uint32_t index, View in) {
  const IntegerBlock& block = encoder_.blocks.at(index);
  const std::string prefix = "blocks." + std::to_string(index) + ".";
  const bool post = encoder_.shape.post_norm;

  const View attended = attention(
      prefix + "attn.",
      operand(prefix + "attn", post ? in : layer_norm(prefix + "norm1", in, block.norm1)), block);
  View stream = add_residual(prefix + "attn.proj", prefix + "attn.residual", attended, in,
                             block.attention_identity, block.scales.attention_residual);
  if (post) stream = layer_norm(prefix + "norm1", stream, block.norm1);

  const View transformed = mlp(
      prefix + "mlp.",
      operand(prefix + "mlp", post ? stream : layer_norm(prefix + "norm2", stream, block.norm2)),
      block);
  stream = add_residual(prefix + "mlp.fc2", prefix + "mlp.residual", transformed, stream,
                        block.mlp_identity, block.scales.mlp_residual);
  return post ? layer_norm(prefix + "norm2", stream, block.norm2) : stream;
}

EncoderBlocks::Projections EncoderBlocks::project(const std::string& prefix, const ProductInput& in,
                                                  const IntegerBlock& block) {
  const std::uint32_t query_width = encoder_.query_width();
  const View qkv = linear(prefix + "qkv", in, block.qkv, kOperandBits, hw::DType::kS8);
  Projections result{columns_of(qkv, 0, query_width), columns_of(qkv, query_width, query_width),
                     columns_of(qkv, 2 * query_width, encoder_.shape.width)};
  if (encoder_.shape.latent_heads != 0) {
    result.query = link(prefix, "q", result.query, block.query_link);
    result.key = link(prefix, "k", result.key, block.key_link);
  }
  return result;
}

EncoderBlocks::Projections EncoderBlocks::project_to_cache(const std::string& prefix,
                                                           const ProductInput& in,
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
            rows_of_part(cache, rows_.cache - 1, rows_.cache));
  return {query, columns_of(cache, 0, width), columns_of(cache, width, width)};
}

View EncoderBlocks::attention(const std::string& prefix, const ProductInput& in,
                              const IntegerBlock& block) {
  const std::uint32_t width = encoder_.shape.width;
  const std::uint32_t head_width = encoder_.shape.head_width();
  const auto [query, key, value] =
      rows_.cache == 0 ? project(prefix, in, block) : project_to_cache(prefix, in, block);

  Tensor tensor;
  tensor.name = prefix + "context";
  tensor.rows = in.codes.rows;
  tensor.cols = width;
  tensor.scale = block.scales.context;
  const View context = builder_.whole(builder_.add_tensor(std::move(tensor)));
  for (std::uint32_t s = 0; s < rows_.sequences; ++s) {
    const std::string sequence =
        rows_.sequences == 1 ? prefix : prefix + "seq" + std::to_string(s) + ".";
    for (std::uint32_t h = 0; h < encoder_.shape.heads; ++h) {
      const auto of_head = [&](View view) {
        return rows_of_part(columns_of(view, h * head_width, head_width), s, rows_.sequences);
      };
      head(sequence + "head" + std::to_string(h) + ".", h, of_head(query), of_head(key),
           of_head(value), of_head(context), block);
    }
  }
  return linear(prefix + "proj", {context}, block.proj, kBranchBits, hw::DType::kS32);
}

View EncoderBlocks::link(const std::string& prefix, const std::string& operand, View in,
                         const IntegerHeadMix& link) {
  const std::uint32_t head_width = encoder_.shape.head_width();
  View latent = in;
  if (!encoder_.folded_encoders) {
    latent = linear(prefix + "encoder_" + operand, {in}, across_heads(link.encoder, head_width),
                    kOperandBits, hw::DType::kS8);
    builder_.tensor(latent.tensor).scale = link.latent_scale;
  }
  const View decoded = linear(prefix + "decoder_" + operand, {latent},
                              across_heads(link.decoder, head_width), kOperandBits, hw::DType::kS8);
  builder_.tensor(decoded.tensor).scale = link.scale;
  return decoded;
}

AttentionHead EncoderBlocks::masked(AttentionHead head, const std::string& prefix,
                                    std::uint32_t index, const IntegerBlock& block) {
  if (block.keep.empty()) return head;
  const std::size_t cells = std::size_t{head.query.rows} * head.key.rows;
  if (block.keep.size() != encoder_.shape.heads * cells) {
    throw std::invalid_argument(prefix + "mask: has another number of cells than the scores");
  }
  Tensor table;
  table.name = prefix + "pruned";
  table.rows = head.query.rows;
  table.cols = head.key.rows;
  table.kind = Tensor::Kind::kConstant;
  const auto first = block.keep.begin() + static_cast<std::ptrdiff_t>(index * cells);
  std::transform(first, first + static_cast<std::ptrdiff_t>(cells), std::back_inserter(table.data),
                 [](std::uint8_t kept) {
                   return kept != 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(kPrunedCode);
                 });
  head.pruned = builder_.whole(builder_.add_tensor(std::move(table)));
  head.prune =
      prune_factor(block.score, encoder_.shape.head_width(), encoder_.datapath.multiplier_bits);
  return head;
}

void EncoderBlocks::head(const std::string& prefix, std::uint32_t index, View query, View key,
                         View value, View context, const IntegerBlock& block) {
  AttentionHead head;
  head.query = query;
  head.key = key;
  head.value = value;
  head.context = context;
  head.score = block.score;
  head.context_factor = block.context;
  head.exp_to_code = encoder_.exp_to_code;
  // A cache holds no token after that of the row.
  head.causal = encoder_.shape.causal && rows_.cache == 0;
  add_attention_head(builder_, prefix, encoder_.datapath,
                     masked(std::move(head), prefix, index, block));
}

View EncoderBlocks::mlp(const std::string& prefix, const ProductInput& in,
                        const IntegerBlock& block) {
  const View hidden = linear(prefix + "fc1", in, block.fc1, operand_bits(), operand_type());
  builder_.tensor(hidden.tensor).scale = block.scales.gelu_in;
  const View activated = builder_.stage(prefix + "gelu", hidden,
                                        gelu_stage(block.gelu, operand_bits()), operand_type());
  builder_.tensor(activated.tensor).scale = block.scales.gelu_out;
  return linear(prefix + "fc2", operand(prefix + "gelu", activated), block.fc2, kBranchBits,
                hw::DType::kS32);
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

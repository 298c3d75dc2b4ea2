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
    : builder_(builder), encoder_(encoder), rows_(std::move(rows)) {
  const bool masked = std::any_of(encoder.blocks.begin(), encoder.blocks.end(),
                                  [](const IntegerBlock& block) { return !block.keep.empty(); });
  if (rows_.cache != 0 && (!encoder.shape.causal || encoder.shape.latent_heads != 0 || masked)) {
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
  const std::string prefix = block_name(rows_, index);
  const bool post = encoder_.shape.post_norm;

  const View attended = attention(
      prefix + "attn.", index,
      operand(prefix + "attn", post ? in : layer_norm(prefix + "norm1", in, block.norm1)));
  View stream = add_residual(prefix + "attn.proj", prefix + "attn.residual", attended, in,
                             block.attention_identity, block.scales.attention_residual);
  if (post) stream = layer_norm(prefix + "norm1", stream, block.norm1);
  if (block.cross) {
    const View taken = cross_attention(
        prefix + "cross.", index, layer_norm(prefix + "cross.norm", stream, block.cross->norm));
    stream = add_residual(prefix + "cross.proj", prefix + "cross.residual", taken, stream, {},
                          block.cross->scales.residual);
  }

  const View transformed = mlp(
      prefix + "mlp.",
      operand(prefix + "mlp", post ? stream : layer_norm(prefix + "norm2", stream, block.norm2)),
      block);
  stream = add_residual(prefix + "mlp.fc2", prefix + "mlp.residual", transformed, stream,
                        block.mlp_identity, block.scales.mlp_residual);
  return post ? layer_norm(prefix + "norm2", stream, block.norm2) : stream;
}

std::string EncoderBlocks::block_name(const Rows& rows, std::uint32_t index) {
  return rows.prefix + "blocks." + std::to_string(index) + ".";
}

std::string EncoderBlocks::cache_name(const Rows& rows, std::uint32_t block,
                                      std::uint32_t sequence) {
  return block_name(rows, block) + "attn." +
         (rows.sequences == 1 ? "cache" : "seq" + std::to_string(sequence) + ".cache");
}

EncoderBlocks::Projections EncoderBlocks::project(const std::string& prefix, const ProductInput& in,
                                                  const IntegerBlock& block) {
  const std::uint32_t query_width = encoder_.query_width();
  const View qkv = linear(prefix + "qkv", in, block.qkv, kOperandBits, hw::DType::kS8);
  View query = columns_of(qkv, 0, query_width), key = columns_of(qkv, query_width, query_width);
  const View value = columns_of(qkv, 2 * query_width, encoder_.shape.width);
  if (encoder_.shape.latent_heads != 0) {
    query = link(prefix, "q", query, block.query_link);
    key = link(prefix, "k", key, block.key_link);
  }
  Projections result{query, {}, {}};
  for (std::uint32_t s = 0; s < rows_.sequences; ++s) {
    result.key.push_back(rows_of_part(key, s, rows_.sequences));
    result.value.push_back(rows_of_part(value, s, rows_.sequences));
  }
  return result;
}

EncoderBlocks::Projections EncoderBlocks::project_to_cache(const std::string& prefix,
                                                           std::uint32_t index,
                                                           const ProductInput& in) {
  const std::uint32_t width = encoder_.shape.width;
  const IntegerBlock& block = encoder_.blocks.at(index);
  Projections result;
  std::vector<View> rows;  // the last ones of the caches
  for (std::uint32_t s = 0; s < rows_.sequences; ++s) {
    Tensor tensor;
    tensor.name = cache_name(rows_, index, s);
    tensor.rows = rows_.cache;
    tensor.cols = 2 * width;
    tensor.kind = Tensor::Kind::kState;
    const View cache = builder_.whole(builder_.add_tensor(std::move(tensor)));
    result.key.push_back(columns_of(cache, 0, width));
    result.value.push_back(columns_of(cache, width, width));
    rows.push_back(rows_of_part(cache, rows_.cache - 1, rows_.cache));
  }
  result.query =
      linear(prefix + "q", in, outputs_of(block.qkv, 0, width), kOperandBits, hw::DType::kS8);
  if (rows_.sequences == 1) {
    linear_to(prefix + "kv", in, outputs_of(block.qkv, width, 2 * width), kOperandBits,
              rows.front());
    return result;
  }
  // One product for all sequences, whose rows then go to their caches.
  const View now = linear(prefix + "kv", in, outputs_of(block.qkv, width, 2 * width), kOperandBits,
                          hw::DType::kS8);
  for (std::uint32_t s = 0; s < rows_.sequences; ++s) {
    builder_.stage_to(cache_name(rows_, index, s) + ".append",
                      rows_of_part(now, s, rows_.sequences), clamp_stage(kOperandBits), rows[s]);
  }
  return result;
}

View EncoderBlocks::context_of(const std::string& prefix, std::uint32_t rows, double scale) {
  Tensor tensor;
  tensor.name = prefix + "context";
  tensor.rows = rows;
  tensor.cols = encoder_.shape.width;
  tensor.scale = scale;
  return builder_.whole(builder_.add_tensor(std::move(tensor)));
}

View EncoderBlocks::attention(const std::string& prefix, std::uint32_t index,
                              const ProductInput& in) {
  const IntegerBlock& block = encoder_.blocks.at(index);
  const std::uint32_t head_width = encoder_.shape.head_width();
  const Projections from =
      rows_.cache == 0 ? project(prefix, in, block) : project_to_cache(prefix, index, in);
  const View context = context_of(prefix, in.codes.rows, block.scales.context);
  for (std::uint32_t s = 0; s < rows_.sequences; ++s) {
    const std::string sequence =
        rows_.sequences == 1 ? prefix : prefix + "seq" + std::to_string(s) + ".";
    for (std::uint32_t h = 0; h < encoder_.shape.heads; ++h) {
      const auto of_head = [&](View view) { return columns_of(view, h * head_width, head_width); };
      const auto of_sequence = [&](View view) {
        return rows_of_part(of_head(view), s, rows_.sequences);
      };
      head(sequence + "head" + std::to_string(h) + ".", h, of_sequence(from.query),
           of_head(from.key[s]), of_head(from.value[s]), of_sequence(context), block);
    }
  }
  return linear(prefix + "proj", {context}, block.proj, kBranchBits, hw::DType::kS32);
}

void EncoderBlocks::encoder_keys_values(View states, View out) {
  const std::uint32_t columns = 2 * encoder_.shape.width;
  for (std::uint32_t i = 0; i < encoder_.shape.layers; ++i) {
    linear_to(block_name(rows_, i) + "cross.kv", {states},
              encoder_.blocks[i].cross.value().key_value, kOperandBits,
              columns_of(out, i * columns, columns));
  }
}

View EncoderBlocks::cross_attention(const std::string& prefix, std::uint32_t index, View in) {
  const IntegerCross& cross = *encoder_.blocks.at(index).cross;
  const std::uint32_t width = encoder_.shape.width, head_width = encoder_.shape.head_width();
  const View query = linear(prefix + "query", {in}, cross.query, kOperandBits, hw::DType::kS8);
  const View context = context_of(prefix, in.rows, cross.scales.context);
  for (std::uint32_t h = 0; h < encoder_.shape.heads; ++h) {
    const std::uint32_t first = h * head_width;
    AttentionHead head;
    head.query = columns_of(query, first, head_width);
    head.key = columns_of(rows_.memory, 2 * index * width + first, head_width);
    head.value = columns_of(rows_.memory, (2 * index + 1) * width + first, head_width);
    head.context = columns_of(context, first, head_width);
    head.score = cross.score;
    head.context_factor = cross.context;
    head.exp_to_code = encoder_.exp_to_code;
    add_attention_head(builder_, prefix + "head" + std::to_string(h) + ".", encoder_.datapath,
                       head);
  }
  return linear(prefix + "proj", {context}, cross.proj, kBranchBits, hw::DType::kS32);
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
  std::transform(first, first + static_cast<std::ptrdiff_t>(cells),
                 std::back_inserter(table.data.edit()), [](std::uint8_t kept) {
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

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "model/checkpoint/keep_mask.h"
#include "model/integer/integer_network.h"
#include "model/metadata/datapath_metadata.h"
#include "model/network/encoder_nodes.h"
#include "model/network/network_writer.h"

namespace systole::model {
namespace {

using nlohmann::ordered_json;
using Value = NetworkWriter::Value;

/// Writes layers of an integer network, each with its constants.
class IntegerLeaves {
 public:
  IntegerLeaves(NetworkWriter& writer, const IntegerEncoder& encoder, std::int64_t rows)
      : writer_(writer), encoder_(encoder), rows_(rows) {}

  /// Element type of the residual stream (model/build/encoder_blocks.h).
  [[nodiscard]] std::string stream_type() const {
    return encoder_.datapath.residual_bits <= 16 ? "s16" : "s32";
  }
  /// Of results of LayerNorms and GELUs.
  [[nodiscard]] std::string operand_type() const { return encoder_.row_scales ? "s16" : "s8"; }

  std::string operand(const std::string& name, const std::string& x, std::int64_t columns) {
    if (!encoder_.row_scales) return x;
    return writer_.node(name, "quantise_rows", {x}, {"s8", {rows_, columns}, 0.0});
  }
  void set_rows(std::int64_t rows) { rows_ = rows; }

  static BlockScales scales(const IntegerBlock& block) {
    const IntegerBlock::Scales& s = block.scales;
    return {s.query,   s.key,      s.value,       s.context, s.attention_residual,
            s.gelu_in, s.gelu_out, s.mlp_residual};
  }
  static hw::Dyadic identity1(const IntegerBlock& block) { return block.attention_identity; }
  static hw::Dyadic identity2(const IntegerBlock& block) { return block.mlp_identity; }

  static IntegerLinear part(const IntegerLinear& layer, std::size_t first, std::size_t count) {
    const auto slice = [](const auto& values, std::size_t from, std::size_t size) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(from);
      return std::decay_t<decltype(values)>(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    return {layer.inputs, static_cast<std::uint32_t>(count),
            layer.weight.part(first * layer.inputs, count * layer.inputs),
            slice(layer.bias, first, count), slice(layer.factor, first, count)};
  }

  std::string linear(const std::string& name, const IntegerLinear& layer, const std::string& x,
                     LinearUse use, double scale) {
    const std::string type = use == LinearUse::kOperand  ? "s8"
                             : use == LinearUse::kGelu   ? operand_type()
                             : use == LinearUse::kWide   ? "s16"
                             : use == LinearUse::kStream ? stream_type()
                                                         : "s32";
    return affine(name, "linear", layer, x, {type, {rows_, layer.outputs}, scale});
  }

  std::string norm(const std::string& name, const IntegerLayerNorm& norm, const std::string& x) {
    const std::size_t width = norm.multiplier.size();
    return writer_.node(name, "layer_norm",
                        {x, words(name + ".multiplier", {width}, norm.multiplier),
                         words(name + ".bias", {width}, norm.addend)},
                        {operand_type(), {rows_, static_cast<std::int64_t>(width)}, norm.scale},
                        {{"shift", norm.shift}});
  }

  std::string gelu(const std::string& name, const IntegerBlock& block, const std::string& x,
                   double scale) {
    return writer_.node(name, "gelu", {x}, {operand_type(), {rows_, encoder_.shape.hidden}, scale},
                        gelu_json(block.gelu));
  }

  std::string attention(const std::string& name, const IntegerBlock& block, const std::string& q,
                        const std::string& k, const std::string& v, double scale) {
    std::vector<std::string> inputs = {q, k, v};
    if (!block.keep.empty()) {
      inputs.push_back(writer_.constant(keep_mask_tensor(
          name + ".keep", block.keep, encoder_.shape.heads, static_cast<std::size_t>(rows_))));
    }
    return writer_.node(name, "attention", inputs, {"s8", {rows_, encoder_.shape.width}, scale},
                        {{"heads", encoder_.shape.heads},
                         {"causal", encoder_.shape.causal},
                         {"score", factor_json(block.score)},
                         {"exp_to_code", factor_json(encoder_.exp_to_code)},
                         {"context", factor_json(block.context)}});
  }

  std::string link(const std::string& prefix, const std::string& operand,
                   const IntegerHeadMix& link, std::string x) {
    const std::uint32_t head_width = encoder_.shape.head_width();
    const auto mix = [&](const std::string& name, const IntegerLinear& layer, double scale) {
      x = affine(prefix + name + operand, "head_mix", layer, x,
                 {"s8", {rows_, std::int64_t{layer.outputs} * head_width}, scale});
    };
    if (!encoder_.folded_encoders) mix("encoder_", link.encoder, link.latent_scale);
    mix("decoder_", link.decoder, link.scale);
    return x;
  }

  std::string add(const std::string& name, const std::string& identity, const std::string& branch,
                  hw::Dyadic factor, double scale) {
    ordered_json attributes = ordered_json::object();
    if (encoder_.shape.post_norm) attributes["factor"] = factor_json(factor);
    return writer_.node(name, "add", {identity, branch},
                        {stream_type(), {rows_, encoder_.shape.width}, scale}, attributes);
  }

  /// What the attentions to an encoder read.
  void set_memory(std::string memory) { memory_ = std::move(memory); }

  std::string cross(const std::string& prefix, const IntegerCross& cross,
                    const std::string& stream) {
    const std::uint32_t width = encoder_.shape.width;
    const IntegerCross::Scales& scales = cross.scales;
    const std::string normed = norm(prefix + "norm", cross.norm, stream);
    const auto operand = [&](const char* name, const IntegerLinear& layer, const std::string& x,
                             double scale) {
      return linear(prefix + name, layer, x, LinearUse::kOperand, scale);
    };
    const std::string query = operand("query", cross.query, normed, scales.query);
    const std::string key = operand("key", part(cross.key_value, 0, width), memory_, scales.key);
    const std::string value =
        operand("value", part(cross.key_value, width, width), memory_, scales.value);
    const std::string context = writer_.node(prefix + "context", "attention", {query, key, value},
                                             {"s8", {rows_, width}, scales.context},
                                             {{"heads", encoder_.shape.heads},
                                              {"causal", false},
                                              {"score", factor_json(cross.score)},
                                              {"exp_to_code", factor_json(encoder_.exp_to_code)},
                                              {"context", factor_json(cross.context)}});
    const std::string attended =
        linear(prefix + "proj", cross.proj, context, LinearUse::kBranch, 0.0);
    return add(prefix + "residual", stream, attended, {}, scales.residual);
  }

  /// Logits of the state x of one token.
  std::string head(const IntegerTextHead& head, std::string x) {
    const std::int64_t width = encoder_.shape.width;
    x = operand("class_codes", x, width);
    if (head.function == HeadFunction::kTanh) {
      x = linear("pooler", head.dense, x, LinearUse::kWide, kTanhInputScale);
      x = writer_.node("pooled", "tanh", {x}, {"s8", {rows_, width}, head.pooled_scale},
                       {{"argument", factor_json(head.argument)},
                        {"fraction_bits", head.fraction_bits},
                        {"factor", factor_json(head.output)}});
    } else {
      x = linear("pooler", head.dense, x, LinearUse::kOperand, head.pooled_scale);
      x = writer_.node("pooled", "relu", {x}, {"s8", {rows_, width}, head.pooled_scale});
    }
    return linear("logits", head.classes, x, LinearUse::kLogits, head.logit_scale);
  }

  /// All blocks.
  std::string blocks(std::string x) {
    for (std::size_t i = 0; i < encoder_.blocks.size(); ++i) {
      x = write_block(*this, encoder_.blocks[i], encoder_.shape, encoder_.query_width(), i, x);
    }
    return x;
  }

  std::string words(const std::string& name, const std::vector<std::size_t>& shape,
                    const std::vector<std::int32_t>& values) {
    return writer_.constant(make_tensor(name, FileDtype::kI32, shape, values));
  }

 private:
  std::string affine(const std::string& name, const char* op, const IntegerLinear& layer,
                     const std::string& x, const Value& value) {
    std::vector<std::int32_t> multipliers;
    std::vector<std::int8_t> shifts;
    for (const hw::Dyadic& factor : layer.factor) {
      multipliers.push_back(factor.multiplier);
      shifts.push_back(factor.shift);
    }
    const std::size_t outputs = layer.outputs;
    return writer_.node(
        name, op,
        {x,
         writer_.constant(make_tensor(name + ".weight", FileDtype::kI8, {outputs, layer.inputs},
                                      layer.weight.get())),
         words(name + ".bias", {outputs}, layer.bias),
         words(name + ".multiplier", {outputs}, multipliers),
         writer_.constant(make_tensor(name + ".shift", FileDtype::kI8, {outputs}, shifts))},
        value);
  }

  NetworkWriter& writer_;
  const IntegerEncoder& encoder_;
  std::int64_t rows_;
  std::string memory_;
};

/// Everything of a text network before its head; its states. `ids`: the graph input that it reads.
std::string write_text(NetworkWriter& writer, IntegerLeaves& leaves, const IntegerText& text,
                       const char* ids) {
  const TextShape& shape = text.shape;
  const std::size_t width = shape.encoder.width;
  const Value stream{leaves.stream_type(), {kTokens, shape.encoder.width}, text.embedding_scale};
  std::string x = writer.node("word", "embedding",
                              {writer.input(ids, {"i64", {kTokens}}),
                               leaves.words("word.table", {shape.vocabulary, width}, text.word)},
                              stream);
  const std::string position =
      writer.node("position", "positions",
                  {leaves.words("position.table", {shape.positions, width}, text.position)}, stream,
                  {{"offset", 0}});
  x = writer.node("embedding", "add", {x, position}, stream);
  if (shape.token_types > 0) {
    // That of type 0 is a part of `position`; a network with no other has no table.
    std::vector<std::int32_t> table = text.token_type;
    table.resize(shape.token_types * width, 0);
    const std::string types = writer.input("token_type_ids", {"i64", {kTokens}});
    const std::string type = writer.node(
        "token_type", "embedding",
        {types, leaves.words("token_type.table", {shape.token_types, width}, table)}, stream);
    x = writer.node("typed_embedding", "add", {x, type}, stream);
  }
  if (shape.encoder.post_norm) x = leaves.norm("norm", text.norm, x);
  x = leaves.blocks(x);
  return shape.encoder.post_norm ? x : leaves.norm("norm", text.norm, x);
}

}  // namespace

void write_network(const IntegerVit& vit, const std::string& path) {
  const VitShape& shape = vit.shape;
  const std::size_t width = shape.encoder.width;
  const std::int64_t columns = shape.encoder.width;
  NetworkWriter writer(vit.name, vit.source);
  writer.set_datapath(datapath_metadata(vit.encoder.datapath));
  writer.set_architecture({{"family", "vit"}});
  IntegerLeaves leaves(writer, vit.encoder, shape.patches());
  const std::int64_t side = shape.image / shape.upsample;
  const std::string picture = writer.input("picture", {"u8", {shape.channels, side, side}});
  const std::string patches =
      writer.node("patches", "patches", {picture}, {"s8", {shape.patches(), shape.patch_samples()}},
                  {{"patch", shape.patch}, {"upsample", shape.upsample}, {"levels", shape.levels}});
  std::string x = leaves.linear("patch_embed", vit.patch_embed, patches, LinearUse::kStream, 0.0);
  // The class token is a part of the first row of `position`.
  leaves.set_rows(shape.tokens());
  const Value stream{leaves.stream_type(), {shape.tokens(), columns}, vit.embedding_scale};
  x = writer.node(
      "class_token", "prepend",
      {x, leaves.words("class_token.row", {1, width}, std::vector<std::int32_t>(width))}, stream);
  x = writer.node("embedding", "add_table",
                  {x, leaves.words("embedding.table", {shape.tokens(), width}, vit.position)},
                  stream);
  if (shape.encoder.post_norm) x = leaves.norm("norm", vit.norm, x);
  x = leaves.blocks(x);
  if (!shape.encoder.post_norm) x = leaves.norm("norm", vit.norm, x);
  x = writer.node("class_row", "select_row", {x}, {"s8", {1, columns}}, {{"row", 0}});
  leaves.set_rows(1);
  writer.write(path, leaves.linear("logits", vit.head, x, LinearUse::kLogits, vit.logit_scale));
}

void write_network(const IntegerText& text, const std::string& path) {
  NetworkWriter writer(text.name, text.source);
  writer.set_datapath(datapath_metadata(text.encoder.datapath));
  writer.set_architecture({{"family", text.shape.encoder.causal ? "gpt2" : "bert"}});
  IntegerLeaves leaves(writer, text.encoder, kTokens);
  std::string x = write_text(writer, leaves, text, "input_ids");
  if (text.head) {
    x = writer.node("class_row", "select_row", {x},
                    {leaves.operand_type(), {1, text.shape.encoder.width}}, {{"row", 0}});
    leaves.set_rows(1);
    x = leaves.head(*text.head, x);
  }
  writer.write(path, x);
}

void write_network(const IntegerSeq2Seq& network, const std::string& path) {
  NetworkWriter writer(network.name, network.source);
  writer.set_datapath(datapath_metadata(network.encoder.encoder.datapath));
  writer.set_architecture(
      {{"family", kSeq2SeqFamily}, {"begin", network.tokens.begin}, {"end", network.tokens.end}});
  writer.set_prefix("encoder.");
  IntegerLeaves encoder(writer, network.encoder.encoder, kTokens);
  const std::string memory = write_text(writer, encoder, network.encoder, "input_ids");
  writer.set_prefix("decoder.");
  IntegerLeaves decoder(writer, network.decoder.encoder, kTokens);
  decoder.set_memory(memory);
  const std::string states = write_text(writer, decoder, network.decoder, kTargetIds);
  writer.write(path, decoder.linear("output", network.output, states, LinearUse::kLogits,
                                    network.logit_scale));
}

void write_network(const IntegerLayers& layers, const std::string& path) {
  const IntegerEncoder& encoder = layers.encoder;
  NetworkWriter writer(layers.name, layers.source);
  writer.set_datapath(datapath_metadata(encoder.datapath));
  writer.set_architecture({{"family", encoder.shape.causal ? "decoder" : "encoder"}});
  IntegerLeaves leaves(writer, encoder, layers.length);
  const std::string x = writer.input(
      "embedding", {encoder.shape.post_norm ? leaves.operand_type() : leaves.stream_type(),
                    {layers.length, encoder.shape.width},
                    layers.embedding_scale});
  writer.write(path, leaves.blocks(x));
}

}  // namespace systole::model

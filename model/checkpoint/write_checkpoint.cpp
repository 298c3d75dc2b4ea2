#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/checkpoint/keep_mask.h"
#include "model/checkpoint/network_checkpoint.h"
#include "model/network/encoder_nodes.h"
#include "model/network/network_writer.h"

namespace systole::model {
namespace {

using Value = NetworkWriter::Value;

/// A network of real numbers adds an identity as it is.
struct NoFactor {};

/// Writes layers of a network of real numbers, each with its constants.
class RealLeaves {
 public:
  RealLeaves(NetworkWriter& writer, const EncoderShape& shape, std::int64_t rows,
             double norm_epsilon, GeluForm gelu)
      : writer_(writer), shape_(shape), rows_(rows), norm_epsilon_(norm_epsilon), gelu_(gelu) {}

  void set_rows(std::int64_t rows) { rows_ = rows; }

  static BlockScales scales(const FloatBlock&) { return {}; }
  static std::string operand(const std::string&, const std::string& x, std::int64_t) { return x; }
  static NoFactor identity1(const FloatBlock&) { return {}; }
  static NoFactor identity2(const FloatBlock&) { return {}; }

  static FloatLinear part(const FloatLinear& layer, std::size_t first, std::size_t count) {
    const auto slice = [](const std::vector<double>& values, std::size_t from, std::size_t size) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(from);
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    return {layer.inputs, static_cast<std::uint32_t>(count),
            slice(layer.weight, first * layer.inputs, count * layer.inputs),
            slice(layer.bias, first, count)};
  }

  std::string linear(const std::string& name, const FloatLinear& layer, const std::string& x,
                     LinearUse, double) {
    return affine(name, "linear", layer, x, layer.outputs);
  }

  std::string norm(const std::string& name, const FloatNorm& norm, const std::string& x) {
    const std::size_t width = norm.weight.size();
    return writer_.node(name, "layer_norm",
                        {x, writer_.reals(name + ".weight", {width}, norm.weight),
                         writer_.reals(name + ".bias", {width}, norm.bias)},
                        value(width), {{"epsilon", norm_epsilon_}});
  }

  std::string gelu(const std::string& name, const FloatBlock&, const std::string& x, double) {
    return writer_.node(name, "gelu", {x}, value(shape_.hidden),
                        {{"form", gelu_ == GeluForm::kErf ? "erf" : "tanh"}});
  }

  std::string attention(const std::string& name, const FloatBlock& block, const std::string& q,
                        const std::string& k, const std::string& v, double) {
    std::vector<std::string> inputs = {q, k, v};
    if (!block.keep.empty()) {
      inputs.push_back(writer_.constant(keep_mask_tensor(name + ".keep", block.keep, shape_.heads,
                                                         static_cast<std::size_t>(rows_))));
    }
    return writer_.node(name, "attention", inputs, value(shape_.width),
                        {{"heads", shape_.heads}, {"causal", shape_.causal}});
  }

  std::string link(const std::string& prefix, const std::string& operand, const FloatLink& link,
                   std::string x) {
    const auto mix = [&](const std::string& name, const FloatLinear& layer) {
      x = affine(prefix + name + operand, "head_mix", layer, x,
                 std::size_t{layer.outputs} * shape_.head_width());
    };
    if (link.encoder.outputs != 0) mix("encoder_", link.encoder);
    mix("decoder_", link.decoder);
    return x;
  }

  static std::string cross(const std::string& prefix, const FloatCross&, const std::string&) {
    throw std::invalid_argument(prefix + ": encoder-decoders are written as integers");
  }

  std::string add(const std::string& name, const std::string& identity, const std::string& branch,
                  NoFactor, double) {
    return writer_.node(name, "add", {identity, branch}, value(shape_.width));
  }

  std::string blocks(const std::vector<FloatBlock>& blocks, std::string x) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::uint32_t query_width = (blocks[i].qkv.outputs - shape_.width) / 2;
      x = write_block(*this, blocks[i], shape_, query_width, i, x);
    }
    return x;
  }

  [[nodiscard]] Value value(std::size_t columns) const {
    return {"f32", {rows_, static_cast<std::int64_t>(columns)}};
  }

 private:
  std::string affine(const std::string& name, const char* op, const FloatLinear& layer,
                     const std::string& x, std::size_t columns) {
    const std::size_t outputs = layer.outputs;
    std::vector<std::string> inputs = {
        x, writer_.reals(name + ".weight", {outputs, layer.inputs}, layer.weight)};
    if (!layer.bias.empty()) {
      inputs.push_back(writer_.reals(name + ".bias", {outputs}, layer.bias));
    }
    return writer_.node(name, op, inputs, value(columns));
  }

  NetworkWriter& writer_;
  const EncoderShape& shape_;
  std::int64_t rows_;
  double norm_epsilon_;
  GeluForm gelu_;
};

}  // namespace

void write_network(const VitCheckpoint& checkpoint, const std::string& name,
                   const std::string& path) {
  const VitShape& shape = checkpoint.shape;
  const std::size_t width = shape.encoder.width;
  NetworkWriter writer(name, std::filesystem::path(checkpoint.path).filename().string());
  writer.set_architecture({{"family", "vit"}});
  RealLeaves leaves(writer, shape.encoder, shape.patches(), checkpoint.norm_epsilon,
                    GeluForm::kErf);
  const std::int64_t side = shape.image / shape.upsample;
  const std::string picture = writer.input("picture", {"u8", {shape.channels, side, side}});
  const std::string patches =
      writer.node("patches", "patches", {picture}, leaves.value(shape.patch_samples()),
                  {{"patch", shape.patch}, {"upsample", shape.upsample}, {"levels", shape.levels}});
  std::string x =
      leaves.linear("patch_embed", checkpoint.patch_embed, patches, LinearUse::kStream, 0.0);
  leaves.set_rows(shape.tokens());
  x = writer.node("class_token", "prepend",
                  {x, writer.reals("class_token.row", {1, width}, checkpoint.cls_token)},
                  leaves.value(width));
  x = writer.node(
      "embedding", "add_table",
      {x, writer.reals("embedding.table", {shape.tokens(), width}, checkpoint.position)},
      leaves.value(width));
  if (shape.encoder.post_norm) x = leaves.norm("norm", checkpoint.norm, x);
  x = leaves.blocks(checkpoint.blocks, x);
  if (!shape.encoder.post_norm) x = leaves.norm("norm", checkpoint.norm, x);
  leaves.set_rows(1);
  x = writer.node("class_row", "select_row", {x}, leaves.value(width), {{"row", 0}});
  writer.write(path, leaves.linear("logits", checkpoint.head, x, LinearUse::kLogits, 0.0));
}

void write_network(const TextCheckpoint& checkpoint, const std::vector<double>& head,
                   const std::string& name, const std::string& path) {
  const TextShape& shape = checkpoint.shape;
  const std::size_t width = shape.encoder.width;
  NetworkWriter writer(name, std::filesystem::path(checkpoint.path).filename().string());
  writer.set_architecture({{"family", shape.encoder.causal ? "gpt2" : "bert"}});
  RealLeaves leaves(writer, shape.encoder, kTokens, checkpoint.norm_epsilon, checkpoint.gelu);
  const Value stream = leaves.value(width);
  const std::string ids = writer.input("input_ids", {"i64", {kTokens}});
  const std::string words = writer.reals("word.table", {shape.vocabulary, width}, checkpoint.word);
  std::string x = writer.node("word", "embedding", {ids, words}, stream);
  const std::string position =
      writer.node("position", "positions",
                  {writer.reals("position.table", {shape.positions, width}, checkpoint.position)},
                  stream, {{"offset", 0}});
  x = writer.node("embedding", "add", {x, position}, stream);
  if (shape.token_types > 0) {
    // That of type 0 is a part of `position`.
    const std::string types = writer.input("token_type_ids", {"i64", {kTokens}});
    const std::string type = writer.node(
        "token_type", "embedding",
        {types,
         writer.reals("token_type.table", {shape.token_types, width}, checkpoint.token_type)},
        stream);
    x = writer.node("typed_embedding", "add", {x, type}, stream);
  }
  if (shape.encoder.post_norm) x = leaves.norm("norm", checkpoint.norm, x);
  x = leaves.blocks(checkpoint.blocks, x);
  if (!shape.encoder.post_norm) x = leaves.norm("norm", checkpoint.norm, x);
  if (checkpoint.head) {
    leaves.set_rows(1);
    x = writer.node("class_row", "select_row", {x}, leaves.value(width), {{"row", 0}});
    x = leaves.linear("pooler", checkpoint.head->dense, x, LinearUse::kOperand, 0.0);
    const bool tanh = checkpoint.head->function == HeadFunction::kTanh;
    x = writer.node("pooled", tanh ? "tanh" : "relu", {x}, leaves.value(width));
    x = leaves.linear("logits", checkpoint.head->classes, x, LinearUse::kLogits, 0.0);
  } else if (!head.empty()) {
    const std::string weight = head == checkpoint.word
                                   ? words
                                   : writer.reals("logits.weight", {shape.vocabulary, width}, head);
    x = writer.node("logits", "linear", {x, weight}, leaves.value(shape.vocabulary));
  }
  writer.write(path, x);
}

}  // namespace systole::model

#pragma once

#include <cstdint>
#include <string>

#include "model/metadata/vit_shape.h"
#include "model/network/network_document.h"

/// The nodes of Transformer blocks, for networks of real numbers and of integers alike.
namespace systole::model {

/// Real values of a step of the activations of a block; all 0 in a network of real numbers.
struct BlockScales {
  double query = 0, key = 0, value = 0, context = 0, attention_residual = 0, gelu_in = 0,
         gelu_out = 0, mlp_residual = 0;
};

/// Appends block "blocks.INDEX" and returns its output. `Leaves` writes single layers:
///   linear(name, layer, x, use, scale), part(layer, first, count) of its outputs,
///   norm(name, norm, x), gelu(name, block, x, scale),
///   attention(name, block, q, k, v, scale), link(prefix, operand, link, x),
///   add(name, identity, branch, factor, scale), scales(block), operand(name, x, columns): what a
///   product takes of a LayerNorm's or a GELU's result, cross(prefix, cross, stream) of a decoder's
///   attention to an encoder.
/// `use` is where the result of a linear layer goes: to an operand of 8 bits, to a GELU, to a
/// function of 16 bits, or to a branch.
enum class LinearUse : std::uint8_t { kOperand, kGelu, kWide, kBranch, kStream, kLogits };

template <typename Leaves, typename Block>
std::string write_block(Leaves& leaves, const Block& block, const EncoderShape& shape,
                        std::uint32_t query_width, std::size_t index, const std::string& in) {
  const std::string prefix = "blocks." + std::to_string(index) + ".";
  const BlockScales scales = leaves.scales(block);
  const bool post = shape.post_norm;
  const std::string normed =
      leaves.operand(prefix + "attn.codes",
                     post ? in : leaves.norm(prefix + "norm1", block.norm1, in), shape.width);
  const auto project = [&](const char* name, std::uint32_t first, std::uint32_t count,
                           double scale) {
    return leaves.linear(prefix + "attn." + name, leaves.part(block.qkv, first, count), normed,
                         LinearUse::kOperand, scale);
  };
  std::string query = project("query", 0, query_width, scales.query);
  std::string key = project("key", query_width, query_width, scales.key);
  const std::string value = project("value", 2 * query_width, shape.width, scales.value);
  if (shape.latent_heads != 0) {
    query = leaves.link(prefix + "attn.", "q", block.query_link, query);
    key = leaves.link(prefix + "attn.", "k", block.key_link, key);
  }
  const std::string context =
      leaves.attention(prefix + "attn.context", block, query, key, value, scales.context);
  const std::string attended =
      leaves.linear(prefix + "attn.proj", block.proj, context, LinearUse::kBranch, 0.0);
  std::string stream = leaves.add(prefix + "attn.residual", in, attended, leaves.identity1(block),
                                  scales.attention_residual);
  if (post) stream = leaves.norm(prefix + "norm1", block.norm1, stream);
  if (block.cross) stream = leaves.cross(prefix + "cross.", *block.cross, stream);
  const std::string normed2 = leaves.operand(
      prefix + "mlp.codes", post ? stream : leaves.norm(prefix + "norm2", block.norm2, stream),
      shape.width);
  const std::string hidden =
      leaves.linear(prefix + "mlp.fc1", block.fc1, normed2, LinearUse::kGelu, scales.gelu_in);
  const std::string activated = leaves.operand(
      prefix + "mlp.gelu.codes", leaves.gelu(prefix + "mlp.gelu", block, hidden, scales.gelu_out),
      shape.hidden);
  const std::string branch =
      leaves.linear(prefix + "mlp.fc2", block.fc2, activated, LinearUse::kBranch, 0.0);
  stream = leaves.add(prefix + "mlp.residual", stream, branch, leaves.identity2(block),
                      scales.mlp_residual);
  return post ? leaves.norm(prefix + "norm2", block.norm2, stream) : stream;
}

}  // namespace systole::model

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/number/dyadic.h"
#include "model/metadata/vit_shape.h"
#include "model/network/network_document.h"

/// From the results of a network back to its inputs: which network is it?
namespace systole::model {

/// Steps from values to the nodes that make them. Every error is an InputError that names the node
/// at which the network is another one than those that are known.
class NetworkWalk {
 public:
  explicit NetworkWalk(const NetworkFile& file) : file_(file) {}

  [[nodiscard]] const NetworkFile& file() const { return file_; }
  [[nodiscard]] bool made_by(const std::string& value, std::string_view op) const {
    const NetworkNode* const node = file_.producer(value);
    return node != nullptr && node->is(op);
  }
  /// The node that makes operand 0 of `reader`, or operand `index`.
  [[nodiscard]] const NetworkNode& before(const NetworkNode& reader, std::string_view op,
                                          std::size_t index = 0) const;
  /// Where `reader` gets operand 0 from: itself, or the node that makes codes of rows for it.
  [[nodiscard]] const NetworkNode& coded(const NetworkNode& reader) const {
    return made_by(reader.inputs[0], "quantise_rows") ? *file_.producer(reader.inputs[0]) : reader;
  }
  /// The node that makes the network's output, whatever it is.
  [[nodiscard]] const NetworkNode& last() const;
  /// A graph input.
  [[nodiscard]] bool is_input(const std::string& value) const {
    return file_.producer(value) == nullptr;
  }

  struct Sum {
    std::string identity;
    const NetworkNode* branch;  ///< a linear layer
  };
  /// The operands of an addition to a residual stream. In a network of integers the branch is the
  /// second one.
  [[nodiscard]] Sum sum(const NetworkNode& add) const;

  /// Throws if two nodes read different values as operand 0.
  void require_same_input(const NetworkNode& node, const std::string& value) const;
  /// Throws if a block disagrees with those seen before.
  template <typename T>
  void agree(T& common, const T& found, bool first, const NetworkNode& node,
             const char* what) const {
    if (first) common = found;
    if (common == found) return;
    file_.fail(node, std::string(what) + " is not that of the block after it");
  }

  /// Which LayerNorms a block has: its output is `value`. Nothing begins a block: false.
  struct Ending {
    bool is_block = false, post_norm = false;
  };
  [[nodiscard]] Ending ending(const std::string& value) const;

 private:
  const NetworkFile& file_;
};

/// What the blocks of a network have in common.
struct WalkedEncoder {
  EncoderShape shape;
  bool folded_encoders = false;
  bool row_scales = false;  ///< products read codes of rows
  std::string entry;        ///< the value that the first block reads
  std::string memory;       ///< the encoder's states that all blocks attend to; empty: none
};

/// The attention of a block to an encoder.
struct CrossNodes {
  const NetworkNode *norm, *query, *key, *value, *attention, *proj, *add;
};

/// The factor that an attribute is.
[[nodiscard]] hw::Dyadic factor_of(const NetworkNode& node, const char* key);
/// The constants of a `gelu` of integers.
[[nodiscard]] hw::GeluConstants gelu_of(const NetworkNode& node);

/// The number of columns of an activation.
[[nodiscard]] std::uint32_t columns_of(const NetworkFile& file, const std::string& value);
[[nodiscard]] std::uint32_t rows_of_constant(const NetworkFile& file, const std::string& constant);

/// Reads the query or the key of a block back to its projection, which it returns: through the
/// auto-encoder, if there is one. `encoder` stays empty where it is folded.
template <typename Leaves, typename Link>
const NetworkNode& read_link(const NetworkWalk& walk, Leaves& leaves, const NetworkNode& attention,
                             std::size_t operand, Link& link, WalkedEncoder& common, bool first) {
  const std::string& value = attention.inputs[operand];
  std::uint32_t latent = 0;
  bool folded = false;
  const NetworkNode* node = &attention;
  std::size_t index = operand;
  if (walk.made_by(value, "head_mix")) {
    const NetworkNode& decoder = walk.before(attention, "head_mix", operand);
    leaves.decoder(decoder, link);
    const std::vector<std::size_t>& weight =
        walk.file().constants().tensor(decoder.inputs[1]).shape;
    if (weight[0] != attention.attributes.at("heads").template get<std::size_t>()) {
      walk.file().fail(decoder, "input 'weight': expected a row for each head of the attention");
    }
    latent = static_cast<std::uint32_t>(weight[1]);
    folded = !walk.made_by(decoder.inputs[0], "head_mix");
    node = &decoder;
    index = 0;
    if (!folded) {
      const NetworkNode& encoder = walk.before(decoder, "head_mix");
      leaves.encoder(encoder, link);
      if (walk.file().constants().tensor(encoder.inputs[1]).shape[1] != weight[0]) {
        walk.file().fail(encoder, "input 'weight': expected a column for each head");
      }
      node = &encoder;
    }
  }
  walk.agree(common.shape.latent_heads, latent, first, *node, "the auto-encoder");
  walk.agree(common.folded_encoders, folded, first, *node, "the auto-encoder");
  return walk.before(*node, "linear", index);
}

/// Reads the attention to an encoder that `add` ends, and returns the value of the residual stream
/// before it; or `add` ends a block's own attention: its queries and keys are of the same tokens.
template <typename Leaves, typename Block>
const NetworkNode& read_cross(const NetworkWalk& walk, Leaves& leaves, const NetworkNode& add,
                              Block& block, WalkedEncoder& common, bool first) {
  CrossNodes nodes{};
  const NetworkWalk::Sum sum = walk.sum(add);
  nodes.add = &add;
  nodes.proj = sum.branch;
  nodes.attention = &walk.before(*nodes.proj, "attention");
  std::string memory;
  const NetworkNode* before = &add;
  const std::vector<std::string>& operands = nodes.attention->inputs;
  const bool projected = std::all_of(operands.begin(), operands.begin() + 3,
                                     [&](const auto& x) { return walk.made_by(x, "linear"); });
  if (projected && !common.shape.post_norm) {
    nodes.query = walk.file().producer(operands[0]);
    nodes.key = walk.file().producer(operands[1]);
    nodes.value = walk.file().producer(operands[2]);
    if (nodes.query->inputs[0] != nodes.key->inputs[0] &&
        nodes.key->inputs[0] == nodes.value->inputs[0]) {
      memory = nodes.key->inputs[0];
      if (nodes.attention->attributes.at("causal").template get<bool>()) {
        walk.file().fail(*nodes.attention, "attribute 'causal': expected false of another text");
      }
      walk.agree(common.shape.heads,
                 nodes.attention->attributes.at("heads").template get<std::uint32_t>(), first,
                 *nodes.attention, "attribute 'heads'");
      nodes.norm = &walk.before(*nodes.query, "layer_norm");
      walk.require_same_input(*nodes.norm, sum.identity);
      before = walk.file().producer(sum.identity);
      if (before == nullptr || !before->is("add")) {
        walk.file().fail(add, "expected the sum with an add, as after an attention");
      }
      leaves.cross(nodes, block);
    }
  }
  walk.agree(common.memory, memory, first, *nodes.attention, "the attention to an encoder");
  return *before;
}

/// Reads the block whose output `value` is and returns what it reads. `Leaves` reads single layers:
///   linear(node, layer), query_key_value(q, k, v, block), norm(node, norm), gelu(node, block),
///   attention(node, block), encoder(node, link), decoder(node, link), add1(node, block, post),
///   add2(node, block, post), cross(nodes, block).
template <typename Leaves, typename Block>
std::string read_block(const NetworkWalk& walk, Leaves& leaves, const std::string& value,
                       Block& block, WalkedEncoder& common, bool first) {
  const NetworkFile& file = walk.file();
  const bool post = common.shape.post_norm;
  const NetworkNode* end = file.producer(value);
  if (post) {
    leaves.norm(*end, block.norm2);
    end = &walk.before(*end, "add");
  }
  const NetworkWalk::Sum second = walk.sum(*end);
  leaves.add2(*end, block, post);
  leaves.linear(*second.branch, block.fc2);
  const auto coded = [&](const NetworkNode& reader, bool is_first) -> const NetworkNode& {
    const NetworkNode& node = walk.coded(reader);
    walk.agree(common.row_scales, &node != &reader, is_first, reader, "whether rows have scales");
    return node;
  };
  const NetworkNode& gelu = walk.before(coded(*second.branch, first), "gelu");
  leaves.gelu(gelu, block);
  const NetworkNode& fc1 = walk.before(gelu, "linear");
  leaves.linear(fc1, block.fc1);
  walk.agree(common.shape.hidden, columns_of(file, fc1.output), first, fc1, "the MLP's width");
  const NetworkNode* middle = file.producer(second.identity);
  if (post) {
    walk.require_same_input(coded(fc1, false), second.identity);
    if (middle == nullptr || !middle->is("layer_norm")) {
      file.fail(*end, "expected the sum with a layer_norm, as after an attention");
    }
    leaves.norm(*middle, block.norm1);
    middle = &walk.before(*middle, "add");
  } else {
    const NetworkNode& norm = walk.before(coded(fc1, false), "layer_norm");
    walk.require_same_input(norm, second.identity);
    leaves.norm(norm, block.norm2);
    if (middle == nullptr || !middle->is("add")) {
      file.fail(*end, "expected the sum with an add, as after an attention");
    }
  }
  middle = &read_cross(walk, leaves, *middle, block, common, first);
  const NetworkWalk::Sum sum = walk.sum(*middle);
  leaves.add1(*middle, block, post);
  leaves.linear(*sum.branch, block.proj);
  const NetworkNode& attention = walk.before(*sum.branch, "attention");
  if (attention.attributes.contains("window")) {
    file.fail(attention, "attribute 'window': expected in a Llama alone");
  }
  leaves.attention(attention, block);
  walk.agree(common.shape.heads, attention.attributes.at("heads").template get<std::uint32_t>(),
             first && !block.cross, attention, "attribute 'heads'");
  walk.agree(common.shape.causal, attention.attributes.at("causal").template get<bool>(), first,
             attention, "attribute 'causal'");
  walk.agree(common.shape.width, columns_of(file, attention.output), first, attention, "the width");
  const NetworkNode& query = read_link(walk, leaves, attention, 0, block.query_link, common, first);
  const NetworkNode& key = read_link(walk, leaves, attention, 1, block.key_link, common, false);
  const NetworkNode& projected = walk.before(attention, "linear", 2);
  leaves.query_key_value(query, key, projected, block);
  walk.require_same_input(key, query.inputs[0]);
  walk.require_same_input(projected, query.inputs[0]);
  if (post) {
    walk.require_same_input(coded(query, false), sum.identity);
  } else {
    const NetworkNode& norm = walk.before(coded(query, false), "layer_norm");
    walk.require_same_input(norm, sum.identity);
    leaves.norm(norm, block.norm1);
  }
  if (columns_of(file, sum.identity) != common.shape.width) {
    file.fail(*middle, "the attention has another width than the residual stream");
  }
  return sum.identity;
}

/// Reads all blocks, from the last one, whose output `value` is. Throws InputError if there is none
/// or if they differ in more than their constants.
template <typename Leaves, typename Blocks>
WalkedEncoder read_blocks(const NetworkWalk& walk, Leaves& leaves, const NetworkNode& place,
                          std::string value, Blocks& blocks) {
  const NetworkWalk::Ending last = walk.ending(value);
  if (!last.is_block) {
    walk.file().fail(place,
                     "no Transformer block before it: expected an attention and an MLP, each "
                     "added to what it reads, with a layer_norm before or after");
  }
  WalkedEncoder common;
  common.shape.post_norm = last.post_norm;
  for (NetworkWalk::Ending end = last; end.is_block; end = walk.ending(value)) {
    if (end.post_norm != last.post_norm) {
      walk.file().fail(*walk.file().producer(value),
                       "post-norm and pre-norm blocks in one network");
    }
    blocks.emplace_back();
    value = read_block(walk, leaves, value, blocks.back(), common, blocks.size() == 1);
  }
  std::reverse(blocks.begin(), blocks.end());
  common.shape.layers = static_cast<std::uint32_t>(blocks.size());
  common.entry = value;
  return common;
}

}  // namespace systole::model

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/metadata/llama_shape.h"
#include "model/network/network_walk.h"

/// A Llama from its logits back to its ids, of real numbers and of integers alike.
namespace systole::model {

/// The number that an attribute has, or another if the node does without it.
template <typename T>
T attribute_or(const NetworkNode& node, const char* name, T otherwise) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? otherwise : found->template get<T>();
}

/// Reads the node that makes operand `index` of `reader`, a RMSNorm; of integers through the codes
/// that it becomes. Returns the value that it reads.
template <typename Leaves, typename Norm>
std::string read_llama_norm(const NetworkWalk& walk, Leaves& leaves, const NetworkNode& reader,
                            Norm& norm) {
  const bool codes = walk.file().document().is_integer();
  const NetworkNode& node =
      walk.before(codes ? walk.before(reader, "quantise_rows") : reader, "rms_norm");
  if (node.attributes.contains("heads")) {
    walk.file().fail(node, "attribute 'heads': expected of queries and keys alone");
  }
  leaves.norm(node, norm);
  return node.inputs[0];
}

/// Reads queries or keys back to their projection, which it returns.
template <typename Leaves, typename Linear, typename Norm>
const NetworkNode& read_rotated(const NetworkWalk& walk, Leaves& leaves,
                                const NetworkNode& attention, std::size_t operand, Linear& linear,
                                Norm& norm, LlamaShape& shape, bool first) {
  const NetworkFile& file = walk.file();
  const NetworkNode& rope = walk.before(attention, "rope", operand);
  const auto heads = rope.attributes.at("heads").get<std::uint32_t>();
  walk.agree(shape.rope_base, rope.attributes.at("base").get<double>(), first, rope, "the base");
  walk.agree(shape.positions, attribute_or<std::uint32_t>(rope, "positions", kMostLlamaPositions),
             first, rope, "the number of positions");
  walk.agree(shape.rope_frequencies,
             attribute_or<std::vector<double>>(rope, "frequencies", std::vector<double>()), first,
             rope, "attribute 'frequencies'");
  if (columns_of(file, rope.output) != heads * shape.head_width) {
    file.fail(rope, "attribute 'heads': heads have another width than the attention's");
  }
  if (heads != (operand == 0 ? shape.heads : shape.kv_heads)) {
    file.fail(rope, "attribute 'heads': is not that of the attention");
  }
  const bool normed = walk.made_by(rope.inputs[0], "rms_norm");
  walk.agree(shape.head_norms, normed, first, rope, "whether a norm is before it");
  const NetworkNode& reader = normed ? *file.producer(rope.inputs[0]) : rope;
  const NetworkNode& projection = walk.before(reader, "linear");
  if (normed) {
    if (attribute_or<std::uint32_t>(reader, "heads", 1) != heads) {
      file.fail(reader, "attribute 'heads': is not that of the rope after it");
    }
    leaves.head_norm(reader, rope, norm);
  }
  leaves.rotated(projection, rope, linear);
  return projection;
}

/// Reads an MLP back from `down`, the linear layer after the product of its gate; `weigh`: what
/// gives that layer its input, if it is one of several MLPs. Returns the gate's linear layer.
template <typename Leaves, typename Mlp, typename Block>
const NetworkNode& read_llama_mlp(const NetworkWalk& walk, Leaves& leaves, const NetworkNode& down,
                                  const NetworkNode* weigh, Mlp& mlp, Block& block,
                                  LlamaShape& shape, bool first) {
  const NetworkFile& file = walk.file();
  leaves.linear(down, mlp.down);
  const NetworkNode& product =
      walk.before(weigh != nullptr ? *weigh : walk.coded(down), "multiply");
  const auto made_by = [&](std::size_t operand, const char* op) {
    return walk.made_by(product.inputs[operand], op);
  };
  const std::size_t gate_operand = made_by(0, "silu") || made_by(0, "gelu") ? 0 : 1;
  const bool gelu = made_by(gate_operand, "gelu");
  const NetworkNode& activation = walk.before(product, gelu ? "gelu" : "silu", gate_operand);
  walk.agree(shape.gelu, gelu, first, activation, "the activation");
  const NetworkNode& gate = walk.before(activation, "linear");
  const NetworkNode& up = walk.before(product, "linear", 1 - gate_operand);
  leaves.linear(gate, mlp.gate);
  leaves.linear(up, mlp.up);
  leaves.gated(activation, product, weigh, block);
  walk.agree(shape.hidden, columns_of(file, gate.output), first, gate, "the MLP's width");
  walk.require_same_input(up, gate.inputs[0]);
  return gate;
}

/// What gives the input of a linear layer, if it weighs an expert; else null.
inline const NetworkNode* weigh_before(const NetworkWalk& walk, const NetworkNode& down) {
  const NetworkNode& coded = walk.coded(down);
  return walk.made_by(coded.inputs[0], "weigh") ? walk.file().producer(coded.inputs[0]) : nullptr;
}

/// Reads the experts of a block whose output `end` gives, the last first. Returns the node of the
/// router, and the value to which the first expert is added.
template <typename Leaves, typename Block>
std::pair<const NetworkNode*, std::string> read_llama_experts(const NetworkWalk& walk,
                                                              Leaves& leaves,
                                                              const NetworkNode& end, Block& block,
                                                              LlamaShape& shape, bool first) {
  const NetworkFile& file = walk.file();
  std::string value = end.output;
  const NetworkNode *route = nullptr, *router = nullptr;
  std::uint32_t left = 0;
  do {
    const NetworkNode* const add = file.producer(value);
    if (add == nullptr)
      file.fail(end, "expected " + std::to_string(left) + " experts more before it");
    const NetworkWalk::Sum sum = walk.sum(*add);
    const NetworkNode* const weigh = weigh_before(walk, *sum.branch);
    if (weigh == nullptr) file.fail(*sum.branch, "expected one that reads what weigh gives");
    if (route == nullptr) {
      route = &walk.before(*weigh, "route", 1);
      router = &walk.before(*route, "linear");
      leaves.router(*router, block);
      left = static_cast<std::uint32_t>(columns_of(file, route->output));
      walk.agree(shape.experts, left, first, *route, "the number of experts");
      walk.agree(shape.active_experts, route->attributes.at("active").get<std::uint32_t>(), first,
                 *route, "attribute 'active'");
      block.experts.resize(left);
    }
    --left;
    if (file.producer(weigh->inputs[1]) != route ||
        weigh->attributes.at("expert").get<std::uint32_t>() != left) {
      file.fail(*weigh, "expected expert " + std::to_string(left) + " of the block's route");
    }
    const bool first_of_all = first && left + 1 == block.experts.size();
    const NetworkNode& gate = read_llama_mlp(walk, leaves, *sum.branch, weigh, block.experts[left],
                                             block, shape, first_of_all);
    walk.require_same_input(gate, router->inputs[0]);
    if (!block.experts[left].down.bias.empty()) {
      file.fail(*sum.branch, "input 'bias': expected none of an expert");
    }
    value = sum.identity;
  } while (left != 0);
  return {router, value};
}

/// Reads the block whose output `value` is and returns what it reads.
template <typename Leaves, typename Block>
std::string read_llama_block(const NetworkWalk& walk, Leaves& leaves, const std::string& value,
                             Block& block, LlamaShape& shape, bool first) {
  const NetworkFile& file = walk.file();
  const NetworkNode& end = *file.producer(value);
  const NetworkWalk::Sum second = walk.sum(end);
  const NetworkNode* reader = nullptr;
  std::string identity = second.identity;
  if (weigh_before(walk, *second.branch) != nullptr) {
    std::tie(reader, identity) = read_llama_experts(walk, leaves, end, block, shape, first);
  } else {
    walk.agree(shape.experts, 0U, first, end, "the number of experts");
    reader = &read_llama_mlp(walk, leaves, *second.branch, nullptr, block, block, shape, first);
  }
  const std::string middle = read_llama_norm(walk, leaves, *reader, block.norm2);
  if (middle != identity) file.fail(end, "does not add to what the MLP's norm reads");
  const NetworkNode* const add = file.producer(middle);
  if (add == nullptr) file.fail(end, "expected the sum with the attention before the MLP");

  const NetworkWalk::Sum sum = walk.sum(*add);
  leaves.linear(*sum.branch, block.proj);
  const NetworkNode& attention = walk.before(walk.coded(*sum.branch), "attention");
  leaves.attention(attention, block);
  const auto heads = attention.attributes.at("heads").get<std::uint32_t>();
  if (!attention.attributes.at("causal").get<bool>()) {
    file.fail(attention, "attribute 'causal': expected true in a Llama");
  }
  walk.agree(shape.heads, heads, first, attention, "attribute 'heads'");
  walk.agree(shape.kv_heads, attribute_or(attention, "kv_heads", heads), first, attention,
             "attribute 'kv_heads'");
  walk.agree(shape.head_width, columns_of(file, attention.output) / heads, first, attention,
             "the width of a head");
  walk.agree(shape.window, attribute_or<std::uint32_t>(attention, "window", 0), first, attention,
             "attribute 'window'");
  const NetworkNode& query =
      read_rotated(walk, leaves, attention, 0, block.query, block.query_norm, shape, first);
  const NetworkNode& key =
      read_rotated(walk, leaves, attention, 1, block.key, block.key_norm, shape, false);
  const NetworkNode& projected = walk.before(attention, "linear", 2);
  leaves.linear(projected, block.value);
  walk.require_same_input(key, query.inputs[0]);
  walk.require_same_input(projected, query.inputs[0]);
  if (read_llama_norm(walk, leaves, query, block.norm1) != sum.identity) {
    file.fail(*add, "does not add to what the attention's norm reads");
  }
  walk.agree(shape.width, columns_of(file, sum.identity), first, *add, "the width");
  return sum.identity;
}

/// Reads all of a Llama: logits, last norm, blocks, embedding. `Leaves` reads single layers:
///   linear(node, layer), rotated(projection, rope, layer), norm(node, norm),
///   head_norm(norm, rope, norm of queries or keys),
///   gated(silu or gelu, product, weigh or null, block), router(node, block),
///   attention(node, block), words(embedding, factor of its rows, llama), output(node, llama).
template <typename Leaves, typename Llama>
void read_llama(const NetworkWalk& walk, Leaves& leaves, Llama& llama) {
  const NetworkFile& file = walk.file();
  const NetworkNode& last = walk.last();
  LlamaShape& shape = llama.shape;
  if (!last.is("linear")) file.fail(last, "expected the linear layer that makes the logits");
  leaves.output(last, llama);
  shape.vocabulary = columns_of(file, last.output);
  std::string value = read_llama_norm(walk, leaves, last, llama.norm);
  while (walk.made_by(value, "add")) {
    llama.blocks.emplace_back();
    value =
        read_llama_block(walk, leaves, value, llama.blocks.back(), shape, llama.blocks.size() == 1);
  }
  if (llama.blocks.empty()) file.fail(last, "no Transformer block before it");
  std::reverse(llama.blocks.begin(), llama.blocks.end());
  shape.layers = static_cast<std::uint32_t>(llama.blocks.size());
  double factor = 1.0;
  if (walk.made_by(value, "scale")) {
    const NetworkNode& scale = *file.producer(value);
    factor = scale.attributes.at("factor").get<double>();
    value = scale.inputs[0];
  }
  const NetworkNode* const embedding = file.producer(value);
  const char* const op = file.document().is_integer() ? "scaled_embedding" : "embedding";
  if (embedding == nullptr || !embedding->is(op)) {
    file.fail(last, std::string("the first block reads no ") + op);
  }
  shape.tied = embedding->inputs[1] == last.inputs[1];
  leaves.words(*embedding, factor, llama);
  if (rows_of_constant(file, embedding->inputs[1]) != shape.vocabulary) {
    file.fail(*embedding, "input 'table': expected a row for each logit");
  }
  shape.qkv_bias = !llama.blocks.front().query.bias.empty();
}

}  // namespace systole::model

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"
#include "model/integer/integer_vit.h"
#include "model/metadata/llama_shape.h"

/// Causal layers that compute one token at a time. The keys and values of all tokens so far are
/// stored in a cache for each layer, the tensor blocks.I.attn.cache [positions x 2 width] (keys,
/// then values), which lasts from step to step. A step appends the row of its token and attends to
/// all rows so far. Its output is that of the same token among all tokens at once
/// (make_encoder_graph()), bit for bit.
namespace systole::model {

/// The step of the last of `positions` tokens. Nodes and tensors are those of make_encoder_graph()
/// for one token, except that attn.qkv is split into attn.q and attn.kv. Tensors with an entry per
/// key have `positions` columns; a step uses the first of them. Throws std::invalid_argument for
/// layers that are not causal, or have masks or an auto-encoder.
[[nodiscard]] Graph make_decode_graph(const IntegerEncoder& encoder, std::uint32_t positions,
                                      std::string name, double embedding_scale);

/// Turns the graph into the step of token `token` (from 0), whichever step it was.
void move_to_token(Graph& graph, std::uint32_t token);

/// Turns the graph of make_llama_decode_graph() (model/build/llama_graph.h) into the step of token
/// `token` (from 0), whichever step it was.
void move_llama_to_token(Graph& graph, const LlamaShape& shape, std::uint32_t token);

/// Turns the graph of make_llama_chunk_graph() into that of the `count` tokens from token `first`
/// on, at most as many as it is made for.
void move_llama_to_chunk(Graph& graph, std::uint32_t first, std::uint32_t count);

/// Sets what the caches begin with: the keys and values of `tokens` tokens that the network has
/// seen, whose inputs are `embedding` [tokens x width]. They are computed by the reference
/// executor, all tokens at once, with the host operators of `machine`
/// (model/build/host_operators.h).
void fill_caches(Graph& graph, const IntegerEncoder& encoder, std::uint32_t tokens,
                 const std::vector<std::int32_t>& embedding, const hw::Machine& machine = {});

}  // namespace systole::model

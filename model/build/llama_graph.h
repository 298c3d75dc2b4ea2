#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "model/build/decode_graph.h"
#include "model/build/llama_routing.h"
#include "model/graph/graph.h"
#include "model/integer/integer_llama.h"

/// From an integer Llama to its operator graph. Nodes are named after the layers
/// ("blocks.0.attn.q.head3", "blocks.0.mlp.gate") and their post-op stages ("blocks.0.mlp.up.mul").
///
/// | tensor                     | type     | shape                    | |
/// |----------------------------|----------|--------------------------|---------------------------|
/// | embedding                  | residual | rows x width             | input: the words' rows    |
/// | rope                       | s16      | rows x head width        | constant cosines, sines   |
/// | blocks.I.attn.queries      | s8       | rows x query width       | rotated queries           |
/// | blocks.I.attn.keys, values | s8       | rows x KV width          | rotated keys, values      |
/// | blocks.I.attn.seqS.cache   | s8       | positions x 2 KV widths  | state: keys, then values  |
/// | output.weight              | s8       | vocabulary x width       | constant: the table of    |
/// |                            |          |                          | words if it is tied       |
/// | logits                     | s32      | sequences x vocabulary   | output: of the last token |
/// |                            |          | or rows x vocabulary     | or of each                |
///
/// Rows are those of all sequences, one after the other. Where a block has experts, the graph has
/// those of `routing`, the host computes the shares of all (shares_name()), and the sum of what
/// they give is that of all experts: of the others each share is 0.
namespace systole::model {

/// `sequences` prompts of `length` tokens each, all at once.
[[nodiscard]] Graph make_llama_graph(const IntegerLlama& llama, std::uint32_t length,
                                     std::uint32_t sequences = 1, const Routing& routing = {});

/// The same with the logits after each token of one text.
[[nodiscard]] Graph make_llama_text_graph(const IntegerLlama& llama, std::uint32_t length);

/// One token of each of `sequences` sequences, which are at the same position, with caches of
/// `positions` tokens. The graph computes the last position; move_llama_to_token() moves it.
[[nodiscard]] Graph make_llama_decode_graph(const IntegerLlama& llama, std::uint32_t positions,
                                            std::uint32_t sequences = 1,
                                            const Routing& routing = {});

/// The next `chunk` tokens, at least two, of a prompt of one sequence, on the caches of
/// make_llama_decode_graph(). It has logits of its last token, or `every` of its tokens. The graph
/// computes the first tokens; move_llama_to_chunk() moves it.
[[nodiscard]] Graph make_llama_chunk_graph(const IntegerLlama& llama, std::uint32_t positions,
                                           std::uint32_t chunk, bool every = false);

/// Sets what the caches begin with: the keys and values of `tokens` tokens of each sequence, whose
/// inputs are `embedding` [sequences x tokens x width]. They are computed by the reference
/// executor, all tokens at once.
void fill_llama_caches(Graph& graph, const IntegerLlama& llama, std::uint32_t tokens,
                       const std::vector<std::int32_t>& embedding);

}  // namespace systole::model

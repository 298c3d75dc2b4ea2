#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph/graph.h"
#include "model/integer/integer_seq2seq.h"

/// An encoder-decoder as operator graphs. Its nodes are those of make_text_graph() after "encoder."
/// and "decoder.", and of each block of the decoder cross.norm, cross.query, cross.kv (of the
/// encoder's states), cross.headH.scores and so on, cross.proj; then "logits". What a part alone
/// reads is the input "embedding" or "decoder.embedding", the result of embed_tokens(). Keys and
/// values of the encoder's states for all blocks are the tensor "memory", s8 [tokens of the source,
/// layers * 2 * width]. "logits" is s32 [rows, vocabulary].
namespace systole::model {

inline constexpr const char* kMemoryTensor = "memory";
inline constexpr const char* kSourceEmbedding = "embedding";
inline constexpr const char* kTargetEmbedding = "decoder.embedding";

/// Both parts at once, for texts of `source` and `target` tokens; what the steps below give row by
/// row. The only input is "embedding", the result of embed_pair().
[[nodiscard]] Graph make_seq2seq_graph(const IntegerSeq2Seq& network, std::uint32_t source,
                                       std::uint32_t target);

/// Embedded tokens, [source + target, width]: those of the encoder, then those of the decoder.
[[nodiscard]] std::vector<std::int32_t> embed_pair(const IntegerSeq2Seq& network,
                                                   const std::vector<std::int32_t>& source,
                                                   const std::vector<std::int32_t>& target);

/// Narrows the attention of both parts to the first `tokens` tokens of the source, as
/// attend_to_keys() does; that of the decoder to its own tokens stays. Rows of the decoder see no
/// later one, so that padding after a target changes none of its rows.
void attend_to_source(Graph& graph, std::uint32_t tokens);

/// The encoder alone; its output is "memory".
[[nodiscard]] Graph make_seq2seq_encoder_graph(const IntegerSeq2Seq& network, std::uint32_t source);

/// The cache of a block of the decoder, of text `sequence` of `sequences`: keys and values of its
/// tokens, [positions, 2 * width].
[[nodiscard]] std::string seq2seq_cache_name(std::uint32_t block, std::uint32_t sequence,
                                             std::uint32_t sequences);

/// The decoder alone, one token of each of `sequences` texts at a time, as make_decode_graph() has
/// it; all of them for the same text of `source` tokens, so that "memory", a state, is one for all.
/// move_to_token() moves it.
[[nodiscard]] Graph make_seq2seq_decode_graph(const IntegerSeq2Seq& network,
                                              std::uint32_t positions, std::uint32_t source,
                                              std::uint32_t sequences = 1);

}  // namespace systole::model

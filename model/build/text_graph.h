#pragma once

#include <cstdint>

#include "model/graph/graph.h"
#include "model/integer/integer_text.h"

namespace systole::model {

/// The whole text network but its tables, for texts of `length` tokens. Input "embedding" [length x
/// width]: residual stream, the result of embed_tokens(). The output is s8 [length x width]: "norm"
/// of the stream after the last block, or if post-norm "norm2" of that block. Nodes are those of
/// make_encoder_graph() and "norm".
[[nodiscard]] Graph make_text_graph(const IntegerText& text, std::uint32_t length);

/// One token at a time, as make_decode_graph() has it, the final "norm" included. Throws
/// std::invalid_argument for a network that is not causal.
[[nodiscard]] Graph make_text_decode_graph(const IntegerText& text, std::uint32_t positions);

}  // namespace systole::model

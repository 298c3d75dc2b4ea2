#pragma once

#include <cstdint>
#include <string>

#include "model/graph/graph.h"
#include "model/integer/integer_vit.h"

/// From an integer network to its operator graph. Nodes are named after the layers of the network
/// ("blocks.0.attn.qkv") and their post-op stages ("blocks.0.attn.qkv.requantise"); the tensor a
/// node writes has the node's name, except for the tensors below.
///
/// | tensor                         | type     | shape             | |
/// |--------------------------------|----------|-------------------|--------------------------------|
/// | LAYER.weight                   | s8       | inputs x outputs  | constant | |
/// blocks.I.attn.headH.row_sum    | s32      | tokens x 1        | statistics of headH.softmax    |
/// | blocks.I.attn.context          | s8       | tokens x width    | all heads side by side | |
/// blocks.I.attn.residual         | residual | tokens x width    | stream after the attention     |
/// | blocks.I.mlp.residual          | residual | tokens x width    | stream after the MLP |
///
/// A block with a mask has the s8 constant blocks.I.attn.headH.pruned [tokens x tokens], 0 or
/// kPrunedCode, which stage headH.mask adds to the scores (model/checkpoint/keep_mask.h). An
/// auto-encoder is the layers blocks.I.attn.encoder_q, decoder_q, encoder_k and decoder_k
/// (model/integer/head_mix.h).
///
/// The residual type is s16 up to 16 residual bits of the datapath, then s32.
namespace systole::model {

/// The whole vision model. Input "patches": s8 [patches x samples]; "position": constant
/// table; "embedding": residual stream whose row 0, the class token, is constant; output "logits":
/// s32 [1 x classes].
[[nodiscard]] Graph make_vit_graph(const IntegerVit& vit);

/// The encoder blocks alone, for `batch` sequences of `length` tokens. Input "embedding" [batch *
/// length x width], sequence after sequence: s8 if the encoder is post-norm (the embedding's
/// LayerNorm is the caller's), else residual stream. The output is all rows after the last block:
/// its "norm2", or "mlp.residual" if pre-norm. `embedding_scale` is the real value of an input
/// step, for reports. With more sequences than one, the parts of an attention are named after
/// theirs, too: "blocks.0.attn.seq1.head2.scores".
[[nodiscard]] Graph make_encoder_graph(const IntegerEncoder& encoder, std::uint32_t length,
                                       std::string name, double embedding_scale,
                                       std::uint32_t batch = 1);

}  // namespace systole::model

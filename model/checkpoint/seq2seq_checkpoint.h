#pragma once

#include <cstdint>
#include <string>

#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/text_checkpoint.h"

namespace systole::model {

/// Real-valued weights of an encoder-decoder: a BERT, and a GPT-2 whose blocks attend to the
/// BERT's states, too (FloatBlock::cross). Both have the same width.
struct Seq2SeqCheckpoint {
  std::string path;
  TextCheckpoint encoder, decoder;
  FloatLinear output;  ///< of the decoder's states: a logit for each word of its vocabulary
  Seq2SeqTokens tokens;
};

/// Loads a safetensors file with the names of Hugging Face's EncoderDecoderModel of BERT and GPT-2:
/// "encoder." before those of BertModel, "decoder." before those of GPT2LMHeadModel. Without
/// "decoder.lm_head.weight" the output is the decoder's table of words. Heads are as of
/// checkpoint_heads(), in config.json those of its parts "encoder" and "decoder".
///
/// Throws InputError that names file, tensor and expected shape if one is missing or has another
/// shape, holds a value that is not finite, or is part of no such network.
[[nodiscard]] Seq2SeqCheckpoint load_seq2seq_checkpoint(const std::string& path);

}  // namespace systole::model

#pragma once

#include <string>

#include "model/checkpoint/checkpoint_names.h"
#include "model/integer/integer_text.h"

namespace systole::model {

/// An encoder-decoder whose every constant is an integer (Seq2SeqCheckpoint). Both parts have the
/// same width and datapath.
struct IntegerSeq2Seq {
  std::string name;
  std::string source;            ///< where the constants come from, for people
  IntegerText encoder, decoder;  ///< blocks of the decoder have IntegerBlock::cross
  IntegerLinear output;          ///< of the decoder's states: a logit for each word
  double logit_scale = 0.0;
  Seq2SeqTokens tokens;
};

}  // namespace systole::model

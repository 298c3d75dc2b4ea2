#pragma once

#include <cstdint>
#include <vector>

#include "model/checkpoint/seq2seq_checkpoint.h"
#include "model/float/activation_sites.h"
#include "model/float/float_blocks.h"
#include "model/float/float_text.h"

namespace systole::model {

/// The real-valued encoder-decoder, in double precision.
class FloatSeq2Seq {
 public:
  explicit FloatSeq2Seq(const Seq2SeqCheckpoint& checkpoint)
      : encoder_(checkpoint.encoder), decoder_(checkpoint.decoder), output_(checkpoint.output) {}

  /// Who is shown the activations of either part; the logits belong to the decoder.
  struct Observers {
    ActivationObserver* encoder;
    ActivationObserver* decoder;
  };

  [[nodiscard]] const TextShape& encoder_shape() const { return encoder_.shape(); }
  [[nodiscard]] const TextShape& decoder_shape() const { return decoder_.shape(); }

  /// Logits [tokens of `target`, vocabulary] after each token of `target`, a text that begins with
  /// Seq2SeqTokens::begin, for the text `source`. Throws std::invalid_argument as
  /// FloatText::hidden() does.
  [[nodiscard]] FloatRows logits(const std::vector<std::int32_t>& source,
                                 const std::vector<std::int32_t>& target,
                                 const Observers& observers = {nullptr, nullptr}) const;

 private:
  FloatText encoder_, decoder_;
  PackedLinear output_;
};

}  // namespace systole::model

#pragma once

#include "model/checkpoint/seq2seq_checkpoint.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/data/dataset.h"
#include "model/integer/integer_seq2seq.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"
#include "model/quantise/calibration.h"
#include "model/quantise/quantiser_options.h"
#include "model/text/token_ids.h"

namespace systole::model {

/// Integer constants for every layer, by post-training quantisation:
/// - scale of an 8-bit tensor: calibrated maximum / 127; of the residual stream: maximum times
///   headroom over the largest code, one scale for the whole of a pre-norm network and one per
///   addition in a post-norm one;
/// - weights: largest magnitude / 127; bias: bias / (weight scale * input scale), all rounded half
///   to even. A weight scale is coarsened where the bias would leave the int32 accumulator;
/// - logits: a power of two, so that codes of different inputs compare, about 18 bits.
///
/// The result depends on the arguments alone: all sums run in a fixed order. Throws InputError,
/// with layer and quantity, for what the datapath cannot represent, options out of range or of
/// which the network has nothing, pictures of another size, and an empty calibration set.
[[nodiscard]] IntegerVit quantise(const VitCheckpoint& checkpoint, const Dataset& calibration,
                                  const QuantiserOptions& options = {});

/// The same for a text network. Throws InputError for folding of outliers or encoders, too, which
/// are of vision models.
[[nodiscard]] IntegerText quantise(const TextCheckpoint& checkpoint, const TokenIds& calibration,
                                   const QuantiserOptions& options = {});

/// The same for an encoder-decoder, which are one network to the datapath: the decoder reads the
/// encoder's states in their scale.
[[nodiscard]] IntegerSeq2Seq quantise(const Seq2SeqCheckpoint& checkpoint,
                                      const TextPairs& calibration,
                                      const QuantiserOptions& options = {});

/// Moves outliers from the channels of the LayerNorm outputs into the weights of the layer that
/// reads them (qkv, fc1, head): channel j of the norm is divided by, and column j of the weights
/// multiplied with, s_j = max|x_j|^alpha / max|w_j|^(1 - alpha) (SmoothQuant, arXiv 2211.10438).
/// The network computes the same function; 8 bits then represent its activations better. `alpha`
/// is 0 to 1; a channel that is never active or never read stays as it is.
///
/// Throws InputError for a post-norm network: its norms also feed the residual path, which has one
/// scale for all channels.
[[nodiscard]] VitCheckpoint fold_outliers(const VitCheckpoint& checkpoint,
                                          const Calibration& calibration, double alpha);

}  // namespace systole::model

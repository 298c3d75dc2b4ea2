#include "model/float/float_seq2seq.h"

namespace systole::model {

FloatRows FloatSeq2Seq::logits(const std::vector<std::int32_t>& source,
                               const std::vector<std::int32_t>& target,
                               const Observers& observers) const {
  const FloatRows memory = encoder_.hidden(source, observers.encoder);
  const FloatRows states = decoder_.hidden(target, observers.decoder, {}, &memory);
  FloatRows result = output_.apply(states);
  show(observers.decoder, Site::kLogits, 0, result, decoder_shape().vocabulary);
  return result;
}

}  // namespace systole::model

#include "model/float/float_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "model/float/float_vit.h"

namespace systole::model {

FloatText::FloatText(const TextCheckpoint& checkpoint)
    : checkpoint_(checkpoint),
      blocks_(checkpoint.shape.encoder, checkpoint.blocks,
              {checkpoint.norm_epsilon, checkpoint.gelu}) {
  checkpoint_.blocks.clear();  // `blocks_` has them
}

FloatRows FloatText::hidden(const std::vector<std::int32_t>& ids, ActivationObserver* observer,
                            const std::vector<std::int32_t>& types, const FloatRows* memory) const {
  const std::size_t width = shape().encoder.width;
  if (ids.empty() || ids.size() > shape().positions) {
    throw std::invalid_argument("FloatText: no tokens, or more than positions");
  }
  require_token_types(shape(), ids, types);
  FloatRows stream;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || static_cast<std::uint32_t>(ids[t]) >= shape().vocabulary) {
      throw std::invalid_argument("FloatText: an id outside the vocabulary");
    }
    const double* const word = &checkpoint_.word[static_cast<std::size_t>(ids[t]) * width];
    const double* const position = &checkpoint_.position[t * width];
    const bool typed = !types.empty() && types[t] != 0;
    const std::size_t type = typed ? static_cast<std::size_t>(types[t]) * width : 0;
    for (std::size_t i = 0; i < width; ++i) {
      stream.push_back(word[i] + position[i] + (typed ? checkpoint_.token_type[type + i] : 0.0));
    }
  }
  show(observer, Site::kEmbedding, 0, stream, width);
  const bool post = shape().encoder.post_norm;
  if (post) {
    stream = layer_norm(checkpoint_.norm, stream, checkpoint_.norm_epsilon);
    show(observer, Site::kEmbeddingNorm, 0, stream, width);
  }
  stream = blocks_.run(std::move(stream), observer, memory);
  if (!post) {
    stream = layer_norm(checkpoint_.norm, stream, checkpoint_.norm_epsilon);
    show(observer, Site::kFinalNorm, 0, stream, width);
  }
  return stream;
}

std::vector<double> FloatText::logits(const std::vector<std::int32_t>& ids,
                                      ActivationObserver* observer,
                                      const std::vector<std::int32_t>& types) const {
  const FloatTextHead& head = checkpoint_.head.value();
  FloatRows first = hidden(ids, observer, types);
  first.resize(shape().encoder.width);  // token 0 alone is classified
  FloatRows pooled = PackedLinear(head.dense).apply(first);
  for (double& x : pooled) {
    x = head.function == HeadFunction::kTanh ? std::tanh(x) : std::max(x, 0.0);
  }
  show(observer, Site::kPooled, 0, pooled, pooled.size());
  FloatRows result = PackedLinear(head.classes).apply(pooled);
  show(observer, Site::kLogits, 0, result, result.size());
  return result;
}

double float_accuracy(const FloatText& text, const TokenIds& texts) {
  if (texts.labels.empty()) throw hw::InputError("the texts have no labels");
  std::size_t right = 0;
  for (std::size_t i = 0; i < texts.count; ++i) {
    const TokenText tokens = texts.text(i).trimmed();
    if (argmax(text.logits(tokens.ids, nullptr, tokens.types)) == texts.labels[i]) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(texts.count);
}

}  // namespace systole::model

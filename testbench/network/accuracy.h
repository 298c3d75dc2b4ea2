#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/build/operator_graph.h"
#include "model/data/dataset.h"
#include "model/integer/integer_seq2seq.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"
#include "model/text/token_ids.h"

namespace systole::testbench {

/// What quantisation cost a model, as fractions of the same pictures.
struct Accuracy {
  double real = 0.0;       ///< of the real-valued checkpoint
  double integer = 0.0;    ///< of the integer reference
  std::size_t inputs = 0;  ///< pictures or texts

  /// What the models that come with Systole hold: the checkpoint classifies at least
  /// kLeastRealAccuracy, and the integer model loses at most kLargestLoss of it.
  [[nodiscard]] bool holds() const;
  /// The second of these alone: what a checkpoint of texts reaches is its task's.
  [[nodiscard]] bool keeps() const;
};

inline constexpr double kLeastRealAccuracy = 0.975;
inline constexpr double kLargestLoss = 0.006;

/// Fraction of the pictures that the integer reference classifies as labelled; `progress` is given
/// how many are done.
[[nodiscard]] double integer_accuracy(const model::IntegerVit& vit, const model::Dataset& data,
                                      const std::function<void(std::size_t)>& progress = {});

/// Runs both over all pictures. Throws InputError if the checkpoint cannot be read, has another
/// shape than the integer model, or the pictures have no labels or another size.
[[nodiscard]] Accuracy measure_accuracy(const model::IntegerVit& vit,
                                        const std::string& checkpoint_path,
                                        const model::Dataset& data);

/// The same for a network of any operators on pictures.
[[nodiscard]] double integer_accuracy(const model::OperatorNetwork& network,
                                      const model::Dataset& data,
                                      const std::function<void(std::size_t)>& progress = {});
[[nodiscard]] Accuracy measure_accuracy(const model::OperatorNetwork& network,
                                        const std::string& checkpoint_path,
                                        const model::Dataset& data);

/// The same for texts, each without its padding, and a network that classifies them.
[[nodiscard]] double integer_accuracy(const model::IntegerText& text, const model::TokenIds& texts,
                                      const std::function<void(std::size_t)>& progress = {});
[[nodiscard]] Accuracy measure_accuracy(const model::IntegerText& text,
                                        const std::string& checkpoint_path,
                                        const model::TokenIds& texts);

/// How many rows of logits, `columns` each, are largest where the next token of `target` is, or
/// after its last one `end`. Rows beyond the target do not count.
template <typename T>
[[nodiscard]] std::size_t right_tokens(const std::vector<T>& logits, std::size_t columns,
                                       const std::vector<std::int32_t>& target, std::int32_t end) {
  std::size_t right = 0;
  for (std::size_t t = 0; t < target.size(); ++t) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(t * columns);
    const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(columns)) - row;
    if (best == (t + 1 < target.size() ? target[t + 1] : end)) ++right;
  }
  return right;
}

/// The same for an encoder-decoder: of the tokens of all targets, the end of each text included,
/// those that are the likeliest after the right ones before them.
[[nodiscard]] double integer_accuracy(const model::IntegerSeq2Seq& network,
                                      const model::TextPairs& texts,
                                      const std::function<void(std::size_t)>& progress = {});
/// `texts_path`: of a file with them, --input of the command.
[[nodiscard]] Accuracy measure_accuracy(const model::IntegerSeq2Seq& network,
                                        const std::string& checkpoint_path,
                                        const std::string& texts_path);

}  // namespace systole::testbench

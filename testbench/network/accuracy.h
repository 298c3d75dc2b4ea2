#pragma once

#include <cstddef>
#include <functional>
#include <string>

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

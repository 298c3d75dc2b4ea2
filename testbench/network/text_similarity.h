#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/integer/integer_text.h"
#include "model/text/token_ids.h"

namespace systole::testbench {

/// What quantisation leaves of the embeddings of texts, the means of the states of their tokens.
struct TextSimilarity {
  std::size_t texts = 0;
  /// Cosine of the angle between the embeddings of a text by integers and by real numbers.
  double mean = 0.0, least = 1.0;
  /// Share of the kNeighbours texts nearest to a text by real numbers that are so by integers, too;
  /// nothing unless there are more texts than that.
  std::optional<double> neighbours;

  [[nodiscard]] bool holds() const { return mean >= kLeastMeanCosine; }

  static constexpr std::size_t kNeighbours = 3;
  static constexpr double kLeastMeanCosine = 0.99;
};

/// Runs the integer reference and the checkpoint, in float64, over all texts without their padding.
/// Throws InputError if the checkpoint cannot be read or has another shape.
[[nodiscard]] TextSimilarity measure_similarity(const model::IntegerText& text,
                                                const std::string& checkpoint_path,
                                                const model::TokenIds& texts);

}  // namespace systole::testbench

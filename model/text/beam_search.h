#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::model {

/// Search for the text of the largest probability, with the `beams` best beginnings kept after
/// every token. Each has a slot, from 0, where a machine keeps what belongs to it: one continuation
/// of a beginning stays in its slot, the others take those of beginnings that were given up. With
/// one beam it is the likeliest token each time.
///
/// A text ends with the token `end`, and the search when `beams` texts have ended. Of these and, if
/// it is stopped before, of the beginnings, the best is that of the largest sum of log2 of
/// probabilities per token, the one that ends a text included; a beginning counts where no text has
/// ended. Of equals the smaller slot, then the smaller token is first.
class BeamSearch {
 public:
  BeamSearch(std::size_t beams, std::int32_t end);

  /// A token for a slot.
  struct Continuation {
    std::size_t parent = 0;  ///< the slot of the text that it continues
    std::int32_t token = 0;
  };
  /// What the beginnings go on with, by slot, from the logits after them, a row of each slot:
  /// integers in steps of `scale`. Before the first call all slots hold the same beginning, so that
  /// each is its own parent. Nothing once the search is over.
  [[nodiscard]] std::vector<Continuation> step(const std::vector<std::vector<std::int32_t>>& logits,
                                               double scale);

  /// The best text so far, without `end`.
  [[nodiscard]] std::vector<std::int32_t> best() const;
  /// Its mean of log2 of the probabilities of its tokens.
  [[nodiscard]] double best_score() const;

 private:
  struct Text {
    std::vector<std::int32_t> tokens;
    double sum = 0.0;  ///< log2 of its probability
    bool ended = false;
    [[nodiscard]] double score() const;
  };
  [[nodiscard]] const Text& best_text() const;

  std::size_t beams_;
  std::int32_t end_;
  std::vector<Text> open_;  ///< by slot; before the first step one for all
  std::vector<Text> ended_;
};

}  // namespace systole::model

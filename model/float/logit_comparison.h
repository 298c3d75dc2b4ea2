#pragma once

#include <cstddef>
#include <vector>

#include "hw/number/half.h"

namespace systole::model {

/// How close logits in FP16 are to those of a reference that has read the same text.
class LogitComparison {
 public:
  /// The logits at one place of a text, [reference's size], and the token that came next. Throws
  /// std::invalid_argument if the sizes differ or `next` is no token.
  void add(const std::vector<hw::Half>& logits, const float* reference, std::size_t next);

  [[nodiscard]] std::size_t places() const { return places_; }
  /// Share of the places whose likeliest token (the first of equals) is the reference's.
  [[nodiscard]] double same_top() const { return mean(same_top_); }
  /// The largest difference of a logit at a place, as a share of the reference's largest magnitude
  /// there: over all places the largest, and the mean.
  [[nodiscard]] double max_error() const { return max_error_; }
  [[nodiscard]] double mean_error() const { return mean(error_sum_); }
  /// Bits that the text costs per token, by the logits and by the reference.
  [[nodiscard]] double bits() const { return mean(bits_); }
  [[nodiscard]] double reference_bits() const { return mean(reference_bits_); }

 private:
  [[nodiscard]] double mean(double sum) const { return sum / static_cast<double>(places_); }

  std::size_t places_ = 0;
  double same_top_ = 0, max_error_ = 0, error_sum_ = 0, bits_ = 0, reference_bits_ = 0;
};

/// -log2 of what a softmax over `count` logits gives to the token `next`.
[[nodiscard]] double bits_of_token(const float* logits, std::size_t count, std::size_t next);

}  // namespace systole::model

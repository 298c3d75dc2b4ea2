#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/number/half.h"

namespace systole::model {

/// Draws tokens by softmax(logits / temperature) over the `top_k` largest logits. The same logits
/// and seed give the same tokens on every host: engine and order are fixed, and the exponential
/// is of single correctly rounded operations.
class Sampler {
 public:
  struct Options {
    /// How flat the choice is, above 0 and finite.
    double temperature = 1.0;
    /// Candidates, the smaller id first of equals; 1: greedy. 0: all.
    std::size_t top_k = 0;
    std::uint64_t seed = 1;
  };

  /// Throws hw::InputError for a temperature out of range.
  explicit Sampler(const Options& options);

  /// Draws one number, whatever the logits. Throws std::invalid_argument without logits,
  /// hw::InputError that names the token if one is not a number: the weights or the FP16 range are
  /// to blame. An infinite logit leaves nothing to those below it.
  [[nodiscard]] std::size_t token(const std::vector<hw::Half>& logits);

 private:
  Options options_;
  std::mt19937_64 engine_;
};

/// e^x for x <= 0, relative error below 1e-14, or 0 from -700 down. The result does not depend on
/// the host or its library.
[[nodiscard]] double portable_exp(double x);

}  // namespace systole::model

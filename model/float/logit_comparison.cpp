#include "model/float/logit_comparison.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace systole::model {
namespace {

/// What is no number is larger than any, and stays.
template <typename T>
T larger(T a, T b) {
  return std::isnan(b) ? b : std::max(a, b);
}

}  // namespace

void LogitComparison::add(const std::vector<hw::Half>& logits, const float* reference,
                          std::size_t next) {
  const std::size_t count = logits.size();
  if (next >= count) throw std::invalid_argument("LogitComparison: no such token");
  std::vector<float> wide(count);
  std::transform(logits.begin(), logits.end(), wide.begin(), hw::to_float);
  float difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < count; ++i) {
    difference = larger(difference, std::fabs(wide[i] - reference[i]));
    magnitude = std::max(magnitude, std::fabs(reference[i]));
  }
  const double error = difference == 0 ? 0.0 : double{difference} / double{magnitude};
  max_error_ = larger(max_error_, error);
  error_sum_ += error;
  const auto top = std::max_element(wide.begin(), wide.end()) - wide.begin();
  const auto reference_top = std::max_element(reference, reference + count) - reference;
  same_top_ += top == reference_top ? 1.0 : 0.0;
  bits_ += bits_of_token(wide.data(), count, next);
  reference_bits_ += bits_of_token(reference, count, next);
  ++places_;
}

double bits_of_token(const float* logits, std::size_t count, std::size_t next) {
  const double maximum = *std::max_element(logits, logits + count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(double{logits[i]} - maximum);
  return (std::log(sum) - (double{logits[next]} - maximum)) / std::log(2.0);
}

}  // namespace systole::model

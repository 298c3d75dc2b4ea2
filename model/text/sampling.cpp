#include "model/text/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "base/error.h"

namespace systole::model {
namespace {

void check(const std::vector<hw::Half>& logits) {
  if (logits.empty()) throw std::invalid_argument("sampling: no logits");
  const auto found = std::find_if(logits.begin(), logits.end(), hw::is_nan);
  if (found == logits.end()) return;
  throw hw::InputError(
      fmt::format("logits: that of token {} is not a number, expected weights "
                  "whose sums stay within FP16",
                  found - logits.begin()));
}

/// As numbers: the zeros are equal.
bool is_larger(hw::Half a, hw::Half b) { return hw::to_float(a) > hw::to_float(b); }

/// The `count` ids with the largest logits, in falling order; the smaller id first of equals.
std::vector<std::size_t> largest(const std::vector<hw::Half>& logits, std::size_t count) {
  std::vector<std::size_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ids.begin(), end, ids.end(), [&](std::size_t a, std::size_t b) {
    if (is_larger(logits[a], logits[b])) return true;
    return !is_larger(logits[b], logits[a]) && a < b;
  });
  ids.erase(end, ids.end());
  return ids;
}

}  // namespace

Sampler::Sampler(const Options& options) : options_(options), engine_(options.seed) {
  if (!(options.temperature > 0.0) || !std::isfinite(options.temperature)) {
    throw hw::InputError(fmt::format("temperature: found {}, expected a finite number above 0",
                                     options.temperature));
  }
}

std::size_t Sampler::token(const std::vector<hw::Half>& logits) {
  check(logits);
  const std::size_t top_k = options_.top_k == 0 ? logits.size() : options_.top_k;
  const std::vector<std::size_t> ids = largest(logits, std::min(top_k, logits.size()));
  const double maximum = hw::to_float(logits[ids.front()]);
  std::vector<double> sums;  // of the weights so far
  double sum = 0;
  for (const std::size_t id : ids) {
    const double logit = hw::to_float(logits[id]);
    // Also of two infinities, which have no difference.
    sum += logit == maximum ? 1.0 : portable_exp((logit - maximum) / options_.temperature);
    sums.push_back(sum);
  }
  const double drawn = std::ldexp(static_cast<double>(engine_() >> 11U), -53) * sum;
  const auto found = std::upper_bound(sums.begin(), sums.end(), drawn);
  // The product may round up to the sum itself.
  return ids[static_cast<std::size_t>(std::min(found, sums.end() - 1) - sums.begin())];
}

double portable_exp(double x) {
  if (!(x > -700.0)) return 0.0;
  // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts (the first ends in 21 zero bits) keeps r
  // exact enough, and thirteen terms of the series leave 2e-16 of e^r. std::fma rounds once by the
  // standard, so that a compiler has no choice.
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr int kTerms = 13;
  const double n = std::nearbyint(x / (kLn2High + kLn2Low));
  const double r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, x));
  double series = 1.0;
  for (int i = kTerms; i > 0; --i) series = std::fma(series, r / i, 1.0);
  return std::ldexp(series, static_cast<int>(n));
}

}  // namespace systole::model

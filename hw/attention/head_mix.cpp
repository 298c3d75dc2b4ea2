#include "hw/attention/head_mix.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/error.h"
#include "hw/number/integer.h"

namespace systole::hw {
namespace {

constexpr std::int64_t kHighestSum = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(const std::string& what, std::int64_t found, const std::string& expected) {
  throw InputError(what + " " + std::to_string(found) + ", expected " + expected);
}

void check_size(const char* what, std::size_t found, std::size_t expected) {
  if (found != expected) {
    refuse("number of " + std::string(what), static_cast<std::int64_t>(found),
           std::to_string(expected));
  }
}

void check_heads(const char* name, std::uint32_t heads) {
  if (heads < 1 || heads > kMaxMixHeads)
    refuse(name, heads, "1 to " + std::to_string(kMaxMixHeads));
}

void check_output(const HeadMix& mix, std::size_t o) {
  const std::string head = "output head " + std::to_string(o) + ": ";
  const Dyadic factor = mix.factors[o];
  if (factor.multiplier < -kHighestSum) {
    refuse(head + "multiplier", factor.multiplier, "at least " + std::to_string(-kHighestSum));
  }
  if (factor.shift < 0 || factor.shift > kMaxDyadicShift) {
    refuse(head + "shift", factor.shift, "0 to " + std::to_string(kMaxDyadicShift));
  }
  constexpr std::int64_t kLargestInput = 128;
  std::int64_t sum = std::abs(std::int64_t{mix.bias[o]});
  for (std::size_t i = 0; i < mix.in_heads; ++i) {
    sum += std::abs(kLargestInput * mix.weights[o * mix.in_heads + i]);
  }
  if (sum > kHighestSum)
    refuse(head + "sum of up to", sum, "at most " + std::to_string(kHighestSum));
}

}  // namespace

void check_head_mix(const HeadMix& mix) {
  check_heads("in_heads", mix.in_heads);
  check_heads("out_heads", mix.out_heads);
  check_size("weights", mix.weights.size(), mix_products(mix));
  check_size("biases", mix.bias.size(), mix.out_heads);
  check_size("factors", mix.factors.size(), mix.out_heads);
  if (static_cast<int>(mix.rounding) > static_cast<int>(Rounding::kFloor)) {
    refuse("rounding", static_cast<int>(mix.rounding), "0 to 2");
  }
  for (std::size_t o = 0; o < mix.out_heads; ++o) check_output(mix, o);
}

void mix_heads(const HeadMix& mix, const std::int8_t* in, std::size_t features, std::int8_t* out) {
  constexpr std::size_t kBlock = 64;
  constexpr IntRange kRange = symmetric_range(8);
  std::array<std::int32_t, kBlock> sums;
  for (std::size_t first = 0; first < features; first += kBlock) {
    const std::size_t count = std::min(kBlock, features - first);
    for (std::size_t o = 0; o < mix.out_heads; ++o) {
      sums.fill(mix.bias[o]);
      for (std::size_t i = 0; i < mix.in_heads; ++i) {
        const std::int32_t weight = mix.weights[o * mix.in_heads + i];
        const std::int8_t* const head = in + i * features + first;
        for (std::size_t f = 0; f < count; ++f) sums[f] += weight * head[f];
      }
      std::int8_t* const to = out + o * features + first;
      for (std::size_t f = 0; f < count; ++f) {
        to[f] = static_cast<std::int8_t>(requantise(sums[f], mix.factors[o], mix.rounding, kRange));
      }
    }
  }
}

HeadMixLines::Token HeadMixLines::take(const HeadMix& mix, std::size_t features,
                                       std::uint64_t arrival) {
  const std::uint64_t work = mix_products(mix);
  const std::size_t groups = (features + macs_per_line_ - 1) / macs_per_line_;
  Token token{arrival, 0};
  for (std::size_t group = 0; group < groups; ++group) {
    const std::uint64_t begun = std::max(arrival, free_[next_]);
    free_[next_] = begun + work;
    next_ = next_ + 1 == free_.size() ? 0 : next_ + 1;
    token = {begun, std::max(token.done, begun + work + kHeadMixLatency)};
  }
  busy_ += groups * work;
  return token;
}

}  // namespace systole::hw

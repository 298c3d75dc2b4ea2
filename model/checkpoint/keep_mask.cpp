#include "model/checkpoint/keep_mask.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "hw/number/int_exp.h"
#include "hw/number/integer.h"
#include "hw/number/softmax_mode.h"
#include "model/graph/stages.h"

namespace systole::model {
namespace {

constexpr std::int64_t kLargestOperand = 127;

/// Bytes of a row of bits.
constexpr std::size_t row_bytes_of(std::size_t tokens) { return (tokens + 7) / 8; }

}  // namespace

std::vector<std::uint8_t> read_keep_mask(const Safetensors& file, const std::string& name,
                                         std::size_t heads, std::size_t tokens) {
  const std::size_t row_bytes = row_bytes_of(tokens);
  file.expect(name, {FileDtype::kU8}, {heads, tokens, row_bytes});
  const std::vector<std::uint8_t> bits = file.copy<std::uint8_t>(name);
  std::vector<std::uint8_t> keep(heads * tokens * tokens);
  for (std::size_t row = 0; row < heads * tokens; ++row) {
    const std::uint8_t* from = bits.data() + row * row_bytes;
    std::uint8_t* to = keep.data() + row * tokens;
    const auto fail = [&](const char* what) {
      throw hw::InputError(file.path() + ": tensor '" + name + "': head " +
                           std::to_string(row / tokens) + ", row " + std::to_string(row % tokens) +
                           ": " + what);
    };
    for (std::size_t key = 0; key < tokens; ++key) to[key] = (from[key / 8] >> (key % 8)) & 1U;
    if (std::find(to, to + tokens, 1) == to + tokens) fail("keeps no key, expected one or more");
    if (tokens % 8 != 0 && from[row_bytes - 1] >> (tokens % 8) != 0) {
      fail("bits after the last key are set, expected zeros");
    }
  }
  return keep;
}

TensorData keep_mask_tensor(const std::string& name, const std::vector<std::uint8_t>& keep,
                            std::size_t heads, std::size_t tokens) {
  const std::size_t row_bytes = row_bytes_of(tokens);
  std::vector<std::uint8_t> bits(heads * tokens * row_bytes);
  for (std::size_t i = 0; i < keep.size(); ++i) {
    const std::size_t key = i % tokens;
    const auto bit = static_cast<std::uint8_t>(keep[i] << (key % 8));
    bits[i / tokens * row_bytes + key / 8] |= bit;
  }
  return make_tensor(name, FileDtype::kU8, {heads, tokens, row_bytes}, bits);
}

std::int64_t vanishing_distance(hw::Dyadic score, unsigned fraction_bits) {
  const hw::IntExpConstants exp = hw::make_int_exp_constants(fraction_bits);
  // From -argument down every bit of the largest value is shifted out.
  std::int64_t halvings = 0;
  while (exp.value_at_zero() >> halvings != 0) ++halvings;
  const std::int64_t argument = halvings * exp.q_ln2;
  // Half up rounds toward plus infinity, hence one more.
  const hw::Int128 scaled = (hw::Int128{1} + argument) << score.shift;
  const hw::Int128 distance = (scaled + score.multiplier - 1) / score.multiplier;
  constexpr std::int64_t kFarthest = std::numeric_limits<std::int64_t>::max();
  return distance > kFarthest ? kFarthest : static_cast<std::int64_t>(distance);
}

hw::Dyadic prune_factor(hw::Dyadic score, std::uint32_t head_width, unsigned multiplier_bits) {
  // A kept score is -largest at the least and a pruned one largest - depth at the most, so the
  // difference to the row's maximum is 2 largest - depth or further down.
  const hw::Int128 largest = hw::Int128{head_width} * kLargestOperand * kLargestOperand;
  const hw::Int128 limit = (std::int64_t{1} << multiplier_bits) - 1;
  const bool zero = score.multiplier == 0;
  const hw::Int128 difference = zero ? 0 : vanishing_distance(score, hw::kScoreFractionBits);
  const hw::Int128 multiplier = (2 * largest + difference + -kPrunedCode - 1) / -kPrunedCode;
  // The addition clamps the product to kBranchBits.
  const hw::Int128 deepest = hw::symmetric_range(kBranchBits).hi;
  if (zero || multiplier > limit || multiplier * -kPrunedCode > deepest) {
    throw hw::InputError("a pruned score needs a multiplier beyond " +
                         std::to_string(multiplier_bits) +
                         " bits, expected larger scores, narrower heads or a wider "
                         "datapath.multiplier_bits");
  }
  return {static_cast<std::int32_t>(multiplier), 0};
}

}  // namespace systole::model

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/number/dyadic.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"

/// Fixed attention masks of a network's block: which keys each query of each head attends to.
///
/// In memory a byte for each cell, [heads][tokens][tokens], 1: kept. In files a bit for each cell,
/// u8 [heads, tokens, ceil(tokens / 8)], key 0 in bit 0 of a row's first byte.
namespace systole::model {

/// The mask in a file's tensor. Throws InputError if the tensor is missing or has another type or
/// shape, for a row that keeps no key, and for a bit after the last key.
[[nodiscard]] std::vector<std::uint8_t> read_keep_mask(const Safetensors& file,
                                                       const std::string& name, std::size_t heads,
                                                       std::size_t tokens);

/// The tensor of a mask that is not empty.
[[nodiscard]] TensorData keep_mask_tensor(const std::string& name,
                                          const std::vector<std::uint8_t>& keep, std::size_t heads,
                                          std::size_t tokens);

/// What a pruned cell holds in the s8 table that is added to the scores; a kept one holds 0.
inline constexpr std::int8_t kPrunedCode = -128;

/// How far below the largest score of its row another one has to be, so that its integer
/// exponential under a softmax of factor `score`, which is not 0, and `fraction_bits` is 0.
[[nodiscard]] std::int64_t vanishing_distance(hw::Dyadic score, unsigned fraction_bits);

/// The factor of that addition: a product of s8 vectors of `head_width` elements (of magnitude 127
/// at most), plus kPrunedCode times the factor, is below every product, by so much that its integer
/// exponential under a softmax of factor `score` and hw::kScoreFractionBits is 0 beside any of
/// them. So softmax of the sums has the bits of softmax with a keep mask.
///
/// The shift is 0. Throws InputError, a single line without a place, if no multiplier of
/// `multiplier_bits` is large enough.
[[nodiscard]] hw::Dyadic prune_factor(hw::Dyadic score, std::uint32_t head_width,
                                      unsigned multiplier_bits);

}  // namespace systole::model

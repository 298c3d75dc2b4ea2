#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/stream/stream_functions.h"

/// The layers of a streaming attention core, in values. Matrices are row-major without gaps.
namespace systole::hw::stream {

/// Sizes: sequence, embedding, projection of a head, width of the feed-forward layer.
struct LayerShape {
  std::size_t sequence = 0, embedding = 0, projection = 0, hidden = 0;
};

/// The products of a layer, in the order in which the core runs them.
enum class Phase : std::uint8_t { kQ, kK, kV, kQk, kAv, kOw, kF1, kF2 };
inline constexpr std::size_t kPhases = 8, kAttentionPhases = 6;

/// A product with what follows it.
struct Product {
  std::vector<std::int32_t> sums;    ///< 26 bits
  std::vector<std::int8_t> results;  ///< requantised
};

/// C = A B or A B^T plus a bias per column, wrapped to 26 bits, requantised.
/// `a`: m x k, as uint8 if `a_unsigned`; `b`: k x n, or n x k if `b_transposed`; `bias`: n values
/// of 24 bits, or empty.
struct ProductOperands {
  const void* a = nullptr;
  const std::int8_t* b = nullptr;
  std::size_t m = 0, n = 0, k = 0;
  bool a_unsigned = false, b_transposed = false;
  const std::vector<std::int32_t>* bias = nullptr;
};
[[nodiscard]] Product multiply(const ProductOperands& operands, const Requantiser& requantiser);

struct HeadWeights {
  std::vector<std::int8_t> q, k, v;  ///< embedding x projection
  std::vector<std::int8_t> o;        ///< projection x embedding
  std::vector<std::int32_t> q_bias, k_bias, v_bias, o_bias;
  std::array<Requantiser, kAttentionPhases> requantisers;  ///< by Phase
};

/// Everything that a head computes.
struct HeadResult {
  std::array<Product, kAttentionPhases> products;  ///< by Phase
  std::vector<SoftmaxRow> rows;                    ///< sequence
  std::vector<std::uint8_t> probabilities;         ///< sequence x sequence

  [[nodiscard]] const Product& of(Phase phase) const {
    return products.at(static_cast<std::size_t>(phase));
  }
};

/// Attention of one head: `x_q` makes the queries, `x_kv` keys and values, both sequence x
/// embedding. The sequence is a multiple of kGroup, at most kLongestRow.
[[nodiscard]] HeadResult attend(const LayerShape& shape, const std::vector<std::int8_t>& x_q,
                                const std::vector<std::int8_t>& x_kv, const HeadWeights& weights);

/// The softmax of rows of scores: their states in `rows`, `length` probabilities a row.
[[nodiscard]] std::vector<std::uint8_t> softmax(const std::vector<std::int8_t>& scores,
                                                std::size_t length, std::vector<SoftmaxRow>& rows);

/// The heads' outputs added and requantised, which is done outside the core.
[[nodiscard]] Product add_heads(const std::vector<HeadResult>& heads, const Requantiser& by);

struct FeedForwardWeights {
  std::vector<std::int8_t> w1;  ///< embedding x hidden
  std::vector<std::int8_t> w2;  ///< hidden x embedding
  std::vector<std::int32_t> bias1, bias2;
  Requantiser requantiser1, requantiser2;
  Activation activation;
};
struct FeedForwardResult {
  Product f1, f2;
  std::vector<std::int8_t> hidden;  ///< activated
};
[[nodiscard]] FeedForwardResult feed_forward(const LayerShape& shape,
                                             const std::vector<std::int8_t>& x,
                                             const FeedForwardWeights& weights);

}  // namespace systole::hw::stream

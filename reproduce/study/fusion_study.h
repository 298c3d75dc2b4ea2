#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What fusing a product with the row-wise operator after it gains or costs, as the survey studies
/// it for BERT-Base (section 5): fused, a tile of the product holds whole rows, which can mean that
/// the other operand is loaded more often than with square tiles.
///
/// The survey does not state what it assumes for each operator. Here:
///
/// - Memory moves 5.12 bytes a cycle: 16 requests of 64 bytes in 200 cycles. Whatever else an
///   operator does overlaps with it (its section 3.3).
/// - A 16 x 16 array is 88 % busy with an accumulator of 128 KiB, 90 % with a larger one (its
///   Fig. 13). Operands and results of a product are bytes.
/// - Tiles are double buffers, in a scratchpad of 256 KiB and in the accumulator. Fused, a tile has
///   all of the accumulator where half of it does not hold 16 rows.
/// - A separate softmax reads int32 and writes bytes. A separate LayerNorm reads int32 and the
///   bytes of the residual, and writes int32. Both pass three times over their rows, 16 elements a
///   cycle (the normalisation unit of its section 3.4).
namespace systole::analysis {

struct FusionPair {
  std::string name;
  std::uint64_t products = 1;  ///< alike, such as heads
  std::uint64_t m = 0, n = 0, k = 0;
  std::uint64_t moved_bytes = 0;  ///< per element, by the row-wise operator of its own
};
/// Q K^T and softmax, of all 12 heads.
[[nodiscard]] FusionPair scores_and_softmax(std::uint64_t length);
/// The projection after the attention and its LayerNorm.
[[nodiscard]] FusionPair projection_and_layer_norm(std::uint64_t length);
/// The second product of the feed-forward network and its LayerNorm.
[[nodiscard]] FusionPair ffn_and_layer_norm(std::uint64_t length);

/// Cycles of product and operator one after the other.
[[nodiscard]] double unfused_cycles(const FusionPair& pair, std::uint64_t accumulator_kib);
/// Throws std::invalid_argument if 16 rows of the result exceed the accumulator.
[[nodiscard]] double fused_cycles(const FusionPair& pair, std::uint64_t accumulator_kib);

struct FusionCase {
  std::string name;
  std::uint64_t accumulator_kib = 0, length = 0;
  std::vector<FusionPair> pairs;

  /// "Q.K and softmax, 128K, l=512".
  [[nodiscard]] std::string text() const;
  /// Of latency by fusing all of them, in percent; negative: fusing is faster.
  [[nodiscard]] double change() const;
};
/// The cases that the survey publishes.
[[nodiscard]] std::vector<FusionCase> survey_fusion_cases();

}  // namespace systole::analysis

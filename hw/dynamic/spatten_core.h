#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/dynamic/operand_stream.h"

namespace systole::hw::dynamic {

/// A top-k machine that prunes tokens and heads in a cascade and values query by query (SpAtten,
/// HPCA 2021, and the SpinalHDL sources and the cycle counter that its authors released).
///
/// A query of a head with t tokens, of which v go into its output, passes four stages, one query
/// behind the other; a stage takes a query once the stage before has finished it:
///
/// | stage   | cycles                                                                      |
/// |---------|-----------------------------------------------------------------------------|
/// | scores  | ceil(t / K), with K = key_macs / dim keys a cycle                           |
/// | softmax | ceil(t / K)                                                                 |
/// | top-k   | quick_select_cycles() of the query's attention, if v is less than t         |
/// | values  | ceil(v / V), with V = value_macs / dim rows of V a cycle                    |
///
/// K and V of a head's kept tokens are on chip before its first query; two heads have room. A layer
/// ends when its stages have run empty (kSpattenDrain) and the tokens of the next one have been
/// selected by their cumulative importance: the attention that all queries of all heads paid them,
/// in this layer and those before. What is pruned stays pruned.
///
/// Left out, in favour of it: latency of the memory, conflicts of its channels and of the buffers'
/// banks. Progressive quantisation, which saves bytes where memory bounds, is left out as well.
struct SpattenArray {
  std::uint32_t key_macs = 512;
  std::uint32_t value_macs = 512;
  std::uint32_t top_k_lanes = 16;  ///< elements that quick select compares in a cycle
};

/// Cycles from a layer's last score to its last output, of the authors' counter: reading, product
/// and reduction 11, softmax 87, product and sum with V 3.
inline constexpr std::uint64_t kSpattenDrain = 101;

/// Attention of a network before anything is pruned.
struct AttentionProbabilities {
  std::size_t layers = 0, heads = 0, tokens = 0;
  std::vector<double> attention;  ///< [layers, heads, tokens, tokens], after the softmax
  /// [layers, heads] magnitude of the outputs, by which heads are ranked; empty: all alike.
  std::vector<double> magnitudes;
};

/// How much is kept.
struct SpattenSchedule {
  std::vector<std::size_t> tokens;  ///< by layer, never more than in the one before
  std::vector<std::size_t> heads;   ///< likewise
  double values = 1.0;              ///< share of a query's tokens in its output, above 0; 1: all
};

struct SpattenCycles {
  std::uint64_t total = 0;
  std::uint64_t memory = 0;  ///< in which the memory moves bytes
  std::uint64_t scores = 0, softmax = 0, top_k = 0, values = 0;  ///< in which each stage works
  std::uint64_t selection = 0;                     ///< of tokens and heads, between layers
  std::uint64_t cells = 0;                         ///< scores that were computed
  std::uint64_t value_cells = 0;                   ///< of these, in an output
  std::vector<std::vector<std::uint32_t>> tokens;  ///< kept in each layer, ascending
  std::vector<std::vector<std::uint32_t>> heads;
};

/// Throws std::invalid_argument for probabilities of another shape, a schedule that does not fit
/// or keeps nothing, more features than MACs, or an array or a stream without elements.
[[nodiscard]] SpattenCycles run_spatten(const AttentionProbabilities& network, std::size_t dim,
                                        const SpattenSchedule& schedule, const SpattenArray& array,
                                        const OperandStream& stream);

/// Cycles in which the engine finds the k-th largest of `values`: it fills `lanes` at a time, then
/// divides what is left by a pivot, `lanes` a cycle and three more, until as many are known to be
/// larger as are wanted, and drains the `k`. Pivots are pseudo-random and depend on the values'
/// places alone. Throws std::invalid_argument for no lanes, or k not in 1 to the number of values.
[[nodiscard]] std::uint64_t quick_select_cycles(std::vector<double> values, std::size_t k,
                                                std::uint32_t lanes);

}  // namespace systole::hw::dynamic

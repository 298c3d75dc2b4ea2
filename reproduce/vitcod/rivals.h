#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/dynamic/sanger_core.h"
#include "hw/dynamic/spatten_core.h"
#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"

/// The accelerators that ViTCoD is compared with, as machines (hw/dynamic).
namespace systole::testbench {

/// One of them with its clock and memory.
template <typename Array>
struct Rival {
  Array array;
  hw::dynamic::OperandStream stream;
  double clock_mhz = 0.0;
};
using Sanger = Rival<hw::dynamic::SangerArray>;
using Spatten = Rival<hw::dynamic::SpattenArray>;

/// As their authors published them: Sanger's array of 64 x 16 elements of 16 bits at 1 GHz and 128
/// GB/s (the constants of its latency model), with a predictor of 64 x 64 4-bit MACs; SpAtten's two
/// times 512 multipliers of 12 bits at 1 GHz and 512 GB/s, a top-k engine of 16 lanes.
[[nodiscard]] Sanger published_sanger();
[[nodiscard]] Spatten published_spatten();

/// With the MACs, clock, memory and 8-bit operands of a machine: Sanger's predictor on the array's
/// own MACs, SpAtten's MACs half for scores and half for values. ViTCoD's authors compared at
/// similar area, and do not say with how many MACs. Throws InputError for a machine with fewer MACs
/// than a row of Sanger's array, or than `dim` features for each half.
[[nodiscard]] Sanger equal_sanger(const hw::Machine& machine);
[[nodiscard]] Spatten equal_spatten(const hw::Machine& machine, std::size_t dim);

/// Bytes that memory can move in a core cycle: the least of bus and DRAM.
[[nodiscard]] double peak_bytes_per_cycle(const hw::Machine& machine);

/// All heads of a mask, one after the other.
[[nodiscard]] hw::dynamic::SangerCycles sanger_cycles(const model::AttentionMask& mask,
                                                      std::size_t dim, const Sanger& sanger);

/// What its events cost by a machine's table of energies: a 4-bit product is a quarter of one of 8
/// bits, as its multiplier has a quarter of the partial products.
[[nodiscard]] double sanger_joules(const hw::dynamic::SangerCycles& run,
                                   const hw::Machine& machine);

/// Attention that a mask keeps, all of a row's cells alike: what a machine sees that ranks it, if
/// nothing but the mask is known.
[[nodiscard]] hw::dynamic::AttentionProbabilities uniform_attention(
    const model::AttentionMask& mask);

/// All tokens and heads; of each query's values the share that is not pruned.
[[nodiscard]] hw::dynamic::SpattenSchedule values_alone(
    const hw::dynamic::AttentionProbabilities& network, double sparsity);
/// As few tokens after the first layer as leave that share of the cells unpruned in all layers
/// together, no values besides. The first layer knows no importance and keeps all tokens; a
/// sparsity that it alone exceeds leaves a token to every other.
[[nodiscard]] hw::dynamic::SpattenSchedule tokens_alone(
    const hw::dynamic::AttentionProbabilities& network, double sparsity);

/// Masks that Sanger predicts for the first pictures of the digits in the embedded model vit65,
/// with the threshold that prunes the share `sparsity` of all their cells.
struct PredictedMasks {
  double threshold = 0.0;
  std::vector<model::AttentionMask> masks;  ///< of each picture
};
[[nodiscard]] PredictedMasks predicted_masks(double sparsity, std::size_t pictures);

}  // namespace systole::testbench

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"
#include "testbench/attention/dynamic_attention.h"

/// The accelerators that ViTCoD is compared with, as machines
/// (testbench/attention/dynamic_attention.h).
namespace systole::testbench {

/// As their authors published them: the presets sanger and spatten.
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

/// Masks that Sanger predicts for the first pictures of the digits in the embedded model vit65,
/// with the threshold that prunes the share `sparsity` of all their cells.
struct PredictedMasks {
  double threshold = 0.0;
  std::vector<model::AttentionMask> masks;  ///< of each picture
};
[[nodiscard]] PredictedMasks predicted_masks(double sparsity, std::size_t pictures);

}  // namespace systole::testbench

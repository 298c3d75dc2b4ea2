#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"

namespace systole::testbench {

/// An auto-encoder of Q and K: `latent_heads` in memory for `heads` on chip.
struct AutoEncoder {
  std::size_t heads = 0, latent_heads = 0;
};

/// Where the link of Q and K takes as long with the auto-encoder as without it: the cycles until
/// the last row of a layer can be used, with room on chip for all of them. Masks (2 % of the bytes)
/// and latencies are part of it, so that what is measured lies up to 3.5 % from what is predicted.
struct BreakEven {
  AutoEncoder auto_encoder;
  double bytes_per_cycle = 0;  ///< of the bus; DRAM is faster
  double decoder_macs = 0;
  double predicted = 0;  ///< of the one of these two that was looked for
};

/// MACs of decoder lines with which the auto-encoder breaks even at `bytes_per_cycle`, found by
/// simulation and interpolated between numbers of lines. Predicted: latent heads x bytes per cycle,
/// as a byte of a latent head costs a product for each head, one for a byte that is saved. Takes
/// about six simulations, each in a child process. Throws std::invalid_argument for an auto-encoder
/// that does not compress, or for which no number of lines does.
[[nodiscard]] BreakEven decoder_break_even(const hw::Machine& machine, AutoEncoder auto_encoder,
                                           double bytes_per_cycle);

/// Bytes per cycle at which the auto-encoder breaks even if the array's D lines decode when all
/// rows have come in. Predicted: D (h - c) / (h c). The same otherwise.
[[nodiscard]] BreakEven array_break_even(const hw::Machine& machine, AutoEncoder auto_encoder);

}  // namespace systole::testbench

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/program/dispatch.h"

namespace systole::testbench {

/// What rtl/core/systole_core.sv is built for: its parameters.
struct CoreSize {
  static constexpr std::size_t kParameters = 17;

  std::uint32_t lanes;  ///< rows and columns of the array, lanes of the pipeline, bytes of a beat
  std::array<std::uint32_t, hw::kStations> stations;  ///< commands: loads, matmuls, results
  std::uint32_t fetch_commands, chain_slots;
  std::uint32_t stages;           ///< of a chain, without a row-wise one at its end
  std::uint32_t parameter_beats;  ///< vectors of columns whose parameters are kept
  std::uint32_t statistics;       ///< words
  std::uint32_t operand_bytes;    ///< of a tensor operand's tile
  std::uint32_t request_bytes, outstanding;
  std::uint32_t banks, bank_words;         ///< of the scratchpad, words of `lanes` bytes
  std::uint32_t sum_banks, sum_bank_rows;  ///< of the accumulator, rows of `lanes` sums
  std::uint32_t preop;                     ///< 1: loads may have stages before the anchor

  [[nodiscard]] constexpr std::uint32_t entries() const {
    return stations[0] + stations[1] + stations[2];
  }
  [[nodiscard]] constexpr std::size_t scratchpad_bytes() const {
    return std::size_t{banks} * bank_words * lanes;
  }
  [[nodiscard]] constexpr std::size_t sums() const {
    return std::size_t{sum_banks} * sum_bank_rows * lanes;
  }
  [[nodiscard]] constexpr std::uint32_t parameter_columns() const {
    return parameter_beats * lanes;
  }
};

/// From the parameters in the order of manifests (testbench/own/own_driver.cpp).
[[nodiscard]] constexpr CoreSize core_size(
    const std::array<std::uint32_t, CoreSize::kParameters>& of) {
  return {of[0],  {of[1], of[2], of[3]},
          of[4],  of[5],
          of[6],  of[7],
          of[8],  of[9],
          of[10], of[11],
          of[12], of[13],
          of[14], of[15],
          of[16]};
}

/// Preset "tiny", with eight chains of up to four stages and a row-wise one.
inline constexpr CoreSize kTinyCore =
    core_size({4, 4, 4, 2, 4, 8, 4, 16, 64, 4096, 16, 4, 4, 256, 2, 128, 0});

/// What is built beside the tests: that, and one of which every size is another, with stages before
/// the anchor.
inline constexpr std::array<CoreSize, 2> kCoreSizes = {
    kTinyCore,
    core_size({8, 3, 5, 3, 5, 4, 2, 8, 32, 2048, 32, 6, 2, 512, 4, 64, 1}),
};

}  // namespace systole::testbench

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/dma/fetch_schedule.h"
#include "hw/program/program_image.h"

/// The cycle contract of fetching the chains that commands name: rtl/core/systole_chain_fetch.sv
/// meets it. The model's reader fetches them earlier, with the chunk of commands that names them.
namespace systole::hw {

/// A chain is read when the command that names it is the next one and the core does not hold it.
/// Chain i has slot i modulo `slots`; while another chain is in the slot, it waits until no command
/// in flight uses a chain.
class ChainSchedule {
 public:
  /// Of a program with that header; `slots`: chains that a core holds, of up to `stages` stages:
  /// what is beyond these in a record is not read.
  ChainSchedule(const ProgramHeader& header, std::size_t slots, std::size_t stages);

  /// The cycle from which a command that names `chain` can be dispatched. It can be the next one
  /// from `next` on; those in flight have all let go of their chains with cycle `unused`.
  [[nodiscard]] std::uint64_t ready(FetchSchedule& fetch, std::uint32_t chain, std::uint64_t next,
                                    std::uint64_t unused);

 private:
  const ProgramHeader header_;
  const std::uint64_t record_bytes_;
  std::vector<std::optional<std::uint32_t>> held_;  ///< by slot
};

}  // namespace systole::hw

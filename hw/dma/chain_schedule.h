#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/dma/fetch_schedule.h"
#include "hw/program/program_image.h"

/// The cycle contract of fetching the chains that commands name: rtl/core/systole_chain_fetch.sv
/// meets it. The model's reader looks at a chunk of commands at once when it has arrived, has more
/// slots, and replaces the chain that was used least recently.
namespace systole::hw {

/// The commands that have arrived are looked at in their order, one a cycle, ahead of dispatch. At
/// one whose chain the core does not hold, that is read before the next one is looked at, and so is
/// then the entry of the table of operands that it takes. A record
/// then leaves its buffer, a word a cycle, while the next one may arrive in another. Chain i has
/// slot i modulo `slots`; while another chain is in the slot, it waits until all commands before it
/// that name that one are complete.
class ChainSchedule {
 public:
  /// Of a program with that header; `slots`: chains that a core holds, of up to `stages` stages:
  /// what is beyond these in a record is not read.
  ChainSchedule(const ProgramHeader& header, std::size_t slots, std::size_t stages);

  /// The cycle from which the next command can be dispatched: to be called for each, in order. It
  /// has arrived with cycle `arrival` and can be the next one from `next` on. `chain`: that it
  /// names, if it does; `operand`: where its second tensor is in the table of operands, if it has
  /// one.
  [[nodiscard]] std::uint64_t ready(FetchSchedule& fetch, std::optional<std::uint32_t> chain,
                                    std::optional<std::uint32_t> operand, std::uint64_t arrival,
                                    std::uint64_t next);
  /// The command that names that chain is complete with cycle `completed`: to be called before
  /// ready() of the next one.
  void is_used(std::uint32_t chain, std::uint64_t completed);

 private:
  struct Slot {
    std::optional<std::uint32_t> held;
    std::uint64_t unused = 0;  ///< cycle with which the commands so far that name it are complete
  };
  [[nodiscard]] Slot& slot_of(std::uint32_t chain) { return slots_[chain % slots_.size()]; }

  const ProgramHeader header_;
  const std::uint64_t record_bytes_;
  std::vector<Slot> slots_;
  std::uint64_t look_ = 0;  ///< cycle from which the next command can be looked at
  std::uint64_t left_ = 0;  ///< cycle with which the last record has left its buffer
};

}  // namespace systole::hw

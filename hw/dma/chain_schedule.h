#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hw/dma/fetch_schedule.h"
#include "hw/program/program_image.h"
#include "hw/program/record_look.h"
#include "hw/program/record_store.h"

/// The cycle contract of fetching the chains that commands name: rtl/core/systole_chain_fetch.sv
/// and the model's reader (tlm/core/program_reader.h) meet it.
namespace systole::hw {

/// Commands are looked at as RecordLook says. Where the core does not hold a command's chain, that
/// is read, and then the entry of the table of operands that the command takes. Chain i has slot i
/// modulo `slots`; while another chain is in the slot, it waits until all commands before it that
/// name that one are complete.
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
  const ProgramHeader header_;
  const std::uint64_t record_bytes_;
  RecordStore chains_;
  RecordLook look_;
};

}  // namespace systole::hw

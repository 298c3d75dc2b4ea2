#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/dma/request_cut.h"
#include "hw/machine/machine.h"
#include "hw/program/program_image.h"
#include "hw/program/record_store.h"
#include "mapper/replay/replay_ports.h"
#include "mapper/replay/request_memory.h"

namespace systole::mapper {

/// What a replay by request has of memory, of its ports, and of the commands whose requests are
/// under way.
struct ReplayRequests {
  explicit ReplayRequests(const hw::Machine& machine)
      : memory(machine),
        fetch(machine, machine.dma.outstanding_reads),
        load(machine, machine.dma.outstanding_reads),
        write(machine, machine.dma.outstanding_writes),
        read(machine, machine.dma.outstanding_reads),
        cut(machine.dma),
        arrivals(std::size_t{2} * machine.core.fetch_commands, 0),
        chains(machine.core.chain_slots) {}

  RequestMemory memory;
  RequestPort fetch, load, write, read;
  hw::RequestCut cut;

  // Of the program.
  std::vector<std::uint64_t> arrivals;  ///< cycle by command, of the chunk in use and the next one
  hw::RecordStore chains;               ///< that the core holds
  struct Referred {
    std::uint64_t command;  ///< its number
    std::uint32_t chain;
  };
  std::vector<Referred> referred;  ///< by the commands of the chunk that was fetched last
  bool reads_chains = false;       ///< in cycle `chains_at`, they are still to be read
  std::uint64_t chains_at = 0;
  hw::ProgramHeader header;

  /// Rows that a unit asks for or writes, those of them that have not been.
  struct Rows {
    ReplayRows left;
    std::uint64_t not_before = 0;  ///< cycle in which the first request may issue
    std::uint64_t row_done = 0;    ///< cycle in which all requests so far of the next row are done
  };

  // Of the load in progress: rows of an operand, then its own.
  unsigned load_operand = 0;
  Rows loaded;
  // Of the store in progress.
  unsigned operand = 0;              ///< whose rows are asked for; all of them: none is
  std::uint64_t operands_begun = 0;  ///< rows of operands that are or have been asked for
  std::uint64_t operand_row = 0;     ///< the next one that arrives
  Rows operands;
  std::vector<std::uint64_t> operands_at;  ///< cycle by row
  Rows written;
  std::uint64_t columns_left = 0;  ///< of a block that leaves transposed
};

}  // namespace systole::mapper

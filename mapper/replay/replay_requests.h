#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hw/core/staged_load.h"
#include "hw/core/sum_traffic.h"
#include "hw/dma/operand_arrivals.h"
#include "hw/dma/request_cut.h"
#include "hw/dma/result_rows.h"
#include "hw/dma/store_queue.h"
#include "hw/machine/machine.h"
#include "hw/program/dispatch.h"
#include "hw/program/program_fetch.h"
#include "hw/program/program_image.h"
#include "hw/program/record_look.h"
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
        queue(machine),
        cut(machine.dma),
        reader{hw::RecordStore(machine.core.chain_slots)} {
    reader.arrivals.assign(std::size_t{2} * machine.core.fetch_commands, 0);
    flows.resize(hw::station_sizes(machine).back());
    if (machine.preop.lanes != 0) staged.resize(hw::station_sizes(machine).front());
  }

  RequestMemory memory;
  RequestPort fetch, load, write, read;
  hw::StoreQueue queue;  ///< of `write`
  /// How the results of a command of the store unit leave its chain, by its number, while it is in
  /// the station.
  [[nodiscard]] hw::ResultFlow& flow_of(std::uint64_t number) {
    return flows[number % flows.size()];
  }
  std::vector<hw::ResultFlow> flows;
  /// The same of a load with stages.
  [[nodiscard]] hw::StagedLoad& staged_of(std::uint64_t number) {
    return staged[number % staged.size()];
  }
  std::vector<hw::StagedLoad> staged;
  hw::RequestCut cut;

  /// Rows that a unit asks for or writes, those of them that have not been.
  struct Rows {
    ReplayRows left;
    std::uint64_t not_before = 0;  ///< cycle in which the first request may issue
    std::uint64_t row_done = 0;    ///< cycle in which all requests so far of the next row are done
    std::uint64_t settling = 0;    ///< cycles for which a request keeps its slot after it is done
  };

  /// What fetches the program (tlm/core/program_reader.h), chunk by chunk: its commands, and when
  /// these have arrived what they refer to, unless the core holds it.
  struct Reader {
    static constexpr std::uint64_t kNotKnown = ~std::uint64_t{0};
    struct Referred {
      std::uint64_t command;  ///< its number
      std::uint32_t chain;
      hw::OperandEntries entries;  ///< of the table of operands: if there are some, not a chain
      [[nodiscard]] bool is_chain() const noexcept { return entries.count == 0; }
    };
    struct Chunk {
      std::uint64_t first = 0, count = 0;  ///< commands
      Rows rows;
      std::vector<Referred> referred;
    };
    explicit Reader(hw::RecordStore store) : chains(std::move(store)) {}
    /// Fetches a chunk, once the one before it has been read with all that it refers to.
    void fetch(Chunk after) {
      if (is_active) {
        waiting = std::move(after);
      } else {
        begin(std::move(after));
      }
    }
    void begin(Chunk fetched);
    /// Of the commands before this one it is known when they are there.
    void know_until(std::uint64_t command);
    /// Looks at the commands up to this one.
    void look_at(std::uint64_t command);
    /// The bytes of the program that hold it.
    [[nodiscard]] ReplayRows row_of(const Referred& one, std::uint64_t program) const;
    /// It is there with cycle `arrival`, and kept, or taken along by its command.
    void take(const Referred& one);
    /// A command is complete with that cycle.
    void complete(std::uint64_t command, std::uint64_t cycle);

    bool is_active = false, has_commands = false;
    double time = 0;  ///< of its next action
    Chunk chunk;
    std::optional<Chunk> waiting;
    Rows rows;                   ///< that are being read
    std::uint64_t arrival = 0;   ///< of what is read
    std::uint64_t commands = 0;  ///< arrival of the commands of the chunk
    std::uint64_t referred =
        0;                     ///< when what the first command that is not known refers to is there
    std::uint64_t looked = 0;  ///< commands that have been looked at
    std::optional<std::uint32_t> waits_for;  ///< chain whose slot is not free
    double waits_since = 0;                  ///< cycle
    std::vector<Referred> in_use;            ///< by commands of which it is not known when they
                                             ///< are complete
    hw::RecordLook look;
    std::size_t next = 0;         ///< of chunk.referred
    std::uint64_t known = 0;      ///< commands
    std::uint64_t first_out = 0;  ///< cycle from which on the chunk's first command can be taken
    std::vector<std::uint64_t> arrivals;  ///< by command of this chunk and the one before
    hw::RecordStore chains;
    hw::ProgramHeader header;
  } reader;

  // Of the load in progress: its rows, then those of its chain's operands.
  unsigned load_operand = 0;  ///< the next one
  Rows loaded;
  /// Of those whose sums wait for the array: the request that is done last, and when it is.
  hw::SumTraffic::Request placing = 0;
  std::uint64_t placed_done = 0;
  // Of the store in progress.
  hw::ResultRows rows;       ///< on their way out
  std::uint64_t learnt = 0;  ///< rows that have left the chain and that others know of
  ReplayRows written;        ///< a row that leaves in requests
  bool is_moving = false;    ///< one leaves in pieces
  /// Of its next piece, and before the first row of the parameters: words that have been served,
  /// cycle of the next one.
  std::uint64_t words = 0, next_word = 0;
  std::uint64_t late_words = 0;    ///< of the parameters
  bool is_set_up = false;          ///< these have been read
  std::uint64_t columns_left = 0;  ///< of a block that leaves transposed
  std::uint64_t block_begin = 0;   ///< its first row
  std::uint64_t block_end = 0;     ///< the cycle after that in which its last row left the chain
  double store_since = 0;          ///< cycle from which it waits to know of its operands
  bool is_followed = false;        ///< it waits for a slot, and its sums have not been read
  // Of the operands that were asked for last: of the store in progress, or of the next one.
  bool asks_for_operands = false;  ///< now
  unsigned operand = 0;            ///< whose rows are asked for
  std::uint64_t operands_end = 0;  ///< rows that are or have been asked for
  /// Cycle in which the rows of the last command with operands had left the chain.
  std::uint64_t operands_free = 0;
  Rows operands;
  hw::OperandArrivals arrivals;
};

}  // namespace systole::mapper

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hw/core/bank_words.h"
#include "hw/core/operand_stream.h"
#include "hw/core/sum_traffic.h"
#include "hw/dma/sum_loads.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"
#include "hw/program/program.h"
#include "mapper/replay/replay_loops.h"
#include "mapper/replay/replay_memory.h"
#include "mapper/replay/replay_requests.h"
#include "mapper/replay/replay_work.h"

namespace systole::mapper {

/// Replays commands on one core and says when they end, in cycles from the program's begin: the
/// timing of tlm/ without SystemC and without single requests to memory.
///
/// Dispatch, reservation stations, hazards and the units follow their contracts, command by
/// command. Memory is served by the chunk (mapper/replay/replay_memory.h), in the order of time, or
/// for several times the effort request by request (mapper/replay/request_memory.h).
///
/// A copy continues as the original does, so that many programs can be tried after one state. It
/// keeps nothing of the programs it has seen.
///
/// Not modelled by the chunk: an L2 cache is its latency alone, the walks of a TLB read an idle
/// memory, slots of a DMA port come free in the order of issue, attention takes the cycles that
/// were announced, an encoder holds up rows by its mean interval, a load to the accumulator keeps
/// no slot until its sums are there, and the runs of a window are all alike. By request the last
/// two, and that a core waits with a chain until it has a place for it.
class Replay {
 public:
  enum class Service : std::uint8_t { kChunks, kRequests };

  explicit Replay(const hw::Machine& machine, Service service = Service::kChunks);

  /// Whether a replay by request knows all that is between the units and memory, and the units:
  /// no L2 cache, TLB, attention engines, unroller.
  [[nodiscard]] static bool knows_requests(const hw::Machine& machine);

  /// The address in DRAM of the program. It is used by request alone.
  void place_program(std::uint64_t address) noexcept { program_address_ = address; }
  /// The core starts when the host has written the rows of an input. It is used by request alone,
  /// before any command.
  void write_input(const ReplayRows& input);
  /// Cycle in which the core started.
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  /// Cycles that the next attention commands take each.
  void expect_attention(std::uint64_t cycles) noexcept { attention_ = cycles; }
  /// Commands [first, last) of the program, after all that was replayed so far. They need not have
  /// ended when it returns: what is dispatched next overlaps with them. A program is not over
  /// before its kEnd has been fetched.
  void run(const hw::Program& program, std::size_t first, std::size_t last);
  /// Lets all commands so far complete. Returns end().
  std::uint64_t finish();

  /// Cycle in which all commands so far have completed.
  [[nodiscard]] std::uint64_t end() const;
  /// By operator: cycle in which the last of its commands has completed, 0 for one without. Of the
  /// commands that have ended: see finish().
  [[nodiscard]] const std::vector<std::uint64_t>& operator_ends() const noexcept { return ends_; }
  /// Cycle in which the last command so far was dispatched.
  [[nodiscard]] std::uint64_t dispatch() const noexcept { return dispatch_; }
  /// Cycle in which the bus has carried all that was read so far.
  [[nodiscard]] double reads_free() const noexcept { return memory_.reads_free(); }
  /// How far a unit has come.
  struct Progress {
    std::uint64_t dispatched = 0, ended = 0;  ///< of its commands
    std::uint64_t free = 0;                   ///< cycle in which it could begin the next one
  };
  [[nodiscard]] Progress progress(hw::Unit unit) const {
    const Queue& queue = queues_[static_cast<std::size_t>(unit)];
    return {queue.dispatched, queue.ended, queue.free};
  }

 private:
  static constexpr std::size_t kLoad = 0, kCompute = 1, kStore = 2, kQueues = 3;
  static constexpr double kNever = 1e300;
  /// Cycles that a port is ahead of others at most: so long is a chunk.
  static constexpr std::uint64_t kChunk = 32;
  /// Requests beyond its window that a port which is alone has served as one chunk.
  static constexpr double kMostAlone = 256;

  enum class Phase : std::uint8_t { kIdle, kRows, kDrain };

  /// A matmul that has left the array's inputs.
  struct Leaving {
    std::uint64_t ended = 0;  ///< hw::OperandStream::end()
    std::uint64_t left = 0;   ///< cycle in which its sums have left the array, as far as is known
    std::uint64_t after = 0;  ///< cycles from then to its completion
  };

  /// A load that has read all that it writes into the accumulator.
  struct Placing {
    std::uint64_t number = 0;
    std::uint64_t command = 0;  ///< its number of all, its operator: others take its place
    std::uint32_t op = 0;
    hw::SumTraffic::Request request = 0;  ///< that is there last
    std::uint64_t cycle = 0;              ///< in which it completes, as far as is known
  };

  /// A unit with its reservation station. Commands are numbered from the unit's first.
  struct Queue {
    explicit Queue(std::uint32_t station);
    [[nodiscard]] ReplayWork& work(std::uint64_t number) {
      return works[number & (works.size() - 1)];
    }
    [[nodiscard]] const ReplayWork& work(std::uint64_t number) const {
      return works[number & (works.size() - 1)];
    }
    [[nodiscard]] ReplayRanges& ranges_of(std::uint64_t number) {
      return ranges[number & (ranges.size() - 1)];
    }
    [[nodiscard]] std::uint64_t completion(std::uint64_t number) const {
      return completed[number & (completed.size() - 1)];
    }
    [[nodiscard]] std::uint64_t release(std::uint64_t number) const {
      return released[number & (released.size() - 1)];
    }
    /// Cycle in which the unit took a command, to wait for its hazards or to begin.
    [[nodiscard]] std::uint64_t taking(std::uint64_t number) const {
      return taken[number & (taken.size() - 1)];
    }
    /// The unit takes its next command, if it has been dispatched.
    void take();
    /// All have completed.
    [[nodiscard]] bool is_drained() const {
      return ended == dispatched && leaving.empty() && placing.empty();
    }
    /// Commands, from the first, of which it is final when they complete.
    [[nodiscard]] std::uint64_t settled() const {
      return placing.empty() ? ended - leaving.size() : placing.front().number;
    }
    /// Cycle in which more is known of those to be placed, if there are some.
    [[nodiscard]] std::uint64_t places_at() const {
      std::uint64_t first = placing.front().cycle;
      for (const Placing& load : placing) first = std::min(first, load.cycle);
      return hw::SumTraffic::known_at(first - 1, looked);
    }
    /// In the reservation station.
    [[nodiscard]] std::uint64_t places_taken() const {
      return dispatched - ended + leaving.size() + placing.size() + completing.size();
    }
    std::uint32_t capacity;
    std::vector<ReplayWork> works;
    std::vector<ReplayRanges> ranges;                       ///< of the works
    std::vector<std::uint64_t> completed, released, taken;  ///< cycles, by number
    std::vector<std::uint64_t> completing;  ///< cycles: ended commands that still have a place
    std::vector<Leaving> leaving;           ///< the youngest that ended, which may complete later
    std::vector<Placing> placing;           ///< others that have ended and may do so
    std::uint64_t looked = 0;               ///< cycle in which these were looked at
    std::uint64_t dispatched = 0;           ///< commands
    std::uint64_t ended = 0;                ///< commands whose completion is known
    std::uint64_t read = 0;                 ///< commands of which it is known when they have read
    std::uint64_t gone = 0;                 ///< commands that had completed at the last dispatch
    std::uint64_t free = 0;                 ///< cycle in which the unit can take its next command
    std::uint64_t started = 0;              ///< of the command in the unit
    Phase phase = Phase::kIdle;
    bool is_due = false;  ///< an idle unit knows when it takes its next command up
    double time = 0;      ///< of its next action, unless it is idle and not due
  };

  [[nodiscard]] bool dispatch_next(const hw::Program& program, std::size_t index);
  [[nodiscard]] bool dispatch_host(const hw::Program& program, std::size_t index);
  [[nodiscard]] bool dispatch_loops(const hw::Program& program, std::size_t index);
  [[nodiscard]] bool issue(const hw::Command& command);
  [[nodiscard]] bool wait_for_place(Queue& queue);
  /// The unit that acts first does so, if that is before a cycle. False: none does.
  bool step_before(double cycle);
  /// Of the youngest command of a unit.
  void find_hazards(std::size_t unit);
  void fetch_chunk(const hw::Program& program, std::size_t index);
  void fetch(std::size_t commands);
  /// Cycle in which the unit takes its next command up, kNever if that is not known yet.
  [[nodiscard]] double start_of(const Queue& queue) const;
  [[nodiscard]] bool knows_ready(const ReplayWork& work) const;
  [[nodiscard]] std::uint64_t ready_of(const ReplayWork& work) const;
  /// Cycle from which a command of the store unit may fetch what it reads of scratchpad and DRAM.
  [[nodiscard]] std::uint64_t readable_at(const ReplayWork& work) const;
  [[nodiscard]] bool knows_readable(const ReplayWork& work) const;
  void act(std::size_t unit, double horizon);
  /// The command in the unit has read its operands with cycle `released`.
  void release_command(Queue& queue, std::uint64_t released);
  /// It is over. `released`: see release_command(), if that is not known yet.
  void end_command(Queue& queue, std::uint64_t released, std::uint64_t completed,
                   std::uint64_t free);
  /// Its completion is final.
  void complete_command(Queue& queue, std::uint64_t number);
  void complete_command(Queue& queue, std::uint64_t command, std::uint32_t op,
                        std::uint64_t completed);
  /// The unit that acts first does so. False if none can.
  bool step();

  /// Cycles from the arrival of a load to its end.
  [[nodiscard]] static std::uint64_t settling(const ReplayWork& work) {
    return work.to_accumulator ? hw::kSumLoadCycles : 0;
  }
  void begin_load(Queue& queue);
  void step_load(Queue& queue, double horizon);
  void arrive(ReplayWork& work, std::uint64_t at, const ReplayMemory::Chunk& chunk);
  void arrive_in_parts(const ReplayWork& work, std::uint64_t at, const ReplayMemory::Chunk& chunk);
  /// Words at the addresses [begin, end) of the scratchpad, one a cycle from `from` on. Returns the
  /// cycle after the last one.
  std::uint64_t serve_words(std::uint64_t begin, std::uint64_t end, std::uint64_t words,
                            std::uint64_t from) {
    return hw::serve_words(scratchpad_, bank_size_, begin, end, words, from);
  }
  /// A row of a move leaves its chain in cycle `ready`, for an address of the scratchpad.
  void serve_row(const ReplayWork& work, std::uint64_t address, std::uint64_t ready) {
    const std::uint64_t from = ready - std::min(ready, work.row_words);
    const std::uint64_t end =
        serve_words(address, address + work.local_bytes, work.row_words, from);
    written_ = std::max(written_, static_cast<double>(end));
  }
  void begin_matmul(Queue& queue);
  void end_matmul(Queue& queue);
  std::uint64_t advance_reads(std::uint64_t now);
  /// The sums of the oldest matmul have left the array, unless it has stood still meanwhile.
  void leave_array();
  /// Of the cycles before this one nobody will know any more what the scratchpad had left.
  void forget_before(std::uint64_t cycle);
  /// What StoreSetUp wants to know of a command's parameters.
  [[nodiscard]] auto parameter_reads(const ReplayWork& work) const {
    return [this, &work](std::uint64_t word, std::uint64_t from, std::uint64_t to) {
      // By the chunk only what was left in the last cycles counts.
      if (!requests_) from = std::max(from, to - std::min(to, hw::kKeptBankCycles) + 1);
      return reads_.read_words(scratchpad_, work.parameter_words, word, from, to);
    };
  }
  void begin_store(Queue& queue);
  void set_up_store(const Queue& queue, std::uint64_t parameters_read);
  void step_store(Queue& queue, double horizon);
  void store_rows(Queue& queue, ReplayWork& work);
  void store_columns(Queue& queue, ReplayWork& work);
  void end_store(Queue& queue);
  /// Cycle from which the operands of the store unit's next command, or of the one that has
  /// started, can be asked for; kNever if that is not known, or they have been.
  [[nodiscard]] double operands_due() const;
  /// Begins to ask for them.
  void begin_operands(double cycle);
  /// The command of the store unit whose tensor operands can be next to be asked for: the one in
  /// the unit if it has some, or else the one after it.
  [[nodiscard]] std::uint64_t next_for_operands() const;
  void fetch_operands(ReplayWork& work, double not_before, unsigned half);
  /// Rows of the store in progress have been used.
  void use_operands(ReplayWork& work);
  /// When the operands of a row of the store in progress are there, so that it can end.
  [[nodiscard]] double operands_there(const ReplayWork& work, std::uint64_t row) const;

  // The same by request.
  void begin_fetch(const hw::Program& program, std::size_t index, std::uint64_t cycle);
  void wait_for_command(const hw::Program& program, std::size_t index);
  void read_chains(double horizon);
  void step_reader(double horizon);
  template <typename OnRow, typename OnRequest>
  bool read_rows(RequestPort& port, ReplayRequests::Rows& rows, double& now, const double& horizon,
                 const OnRow& on_row, const OnRequest& on_request);
  template <typename OnRow>
  bool read_rows(RequestPort& port, ReplayRequests::Rows& rows, double& now, const double& horizon,
                 const OnRow& on_row) {
    const auto none = [](std::uint64_t, std::uint64_t) { return std::optional<std::uint64_t>(); };
    return read_rows(port, rows, now, horizon, on_row, none);
  }
  void begin_load_requests(Queue& queue);
  void step_staged_requests(Queue& queue, double horizon);
  void step_load_requests(Queue& queue, double horizon);
  void load_row(ReplayWork& work, std::uint64_t arrived);
  void begin_store_requests(Queue& queue, std::uint64_t late_words);
  bool read_parameters(Queue& queue, double horizon);
  void step_store_requests(Queue& queue, double horizon);
  void begin_operand_requests(const ReplayWork& work);
  void ask_for_operands(const ReplayWork& work, std::uint64_t not_before);
  void more_operands(const ReplayWork& work);
  void step_operand_requests(double horizon);
  void next_operand(const ReplayWork& work);
  [[nodiscard]] hw::InputTimes input_times(const ReplayWork& work, double now) const;
  void await_inputs(double& now);
  void await_sums(double& now);
  void advance_sums(std::uint64_t now);
  hw::SumTraffic::Placed placed_by(hw::SumTraffic::Request request, std::uint64_t now);
  void place_loads(std::uint64_t now);
  void put_off_starts();
  [[nodiscard]] bool learn(const ReplayWork& work);
  bool write_row(const ReplayWork& work, double& now, double horizon);
  bool move_row(const ReplayWork& work, double& now, double horizon);
  bool serve_known(std::uint64_t at, std::uint64_t bytes, std::uint64_t words, std::uint64_t from,
                   double& now, double horizon);
  bool leave_block(const ReplayWork& work, double& now);
  void make_column(const ReplayWork& work);
  void begin_row(bool moves, std::uint64_t address, std::uint64_t bytes);
  void release_sums(const ReplayWork& work);

  hw::Machine machine_;
  ReplayMemory memory_;
  ReplayPort fetch_port_, load_port_, write_port_, read_port_;
  hw::BankService scratchpad_;
  BlockSize bank_size_;                     ///< of the scratchpad
  BlockSize load_access_;                   ///< what loads write there at once
  std::uint64_t piece_bytes_;               ///< of what stores write
  std::optional<ReplayRequests> requests_;  ///< of a replay by request
  std::array<Queue, kQueues> queues_;
  std::shared_ptr<ReplayLoops> loops_;  ///< nullptr: the machine has no unroller
  std::vector<std::uint64_t> ends_;
  std::uint64_t program_address_ = 0, begin_ = 0;
  std::uint64_t attention_ = 0;
  std::uint64_t commands_ = 0;  ///< dispatched so far
  std::uint64_t dispatch_ = 0;  ///< cycle of the last dispatch
  double arrival_ = 0;          ///< of the commands that are fetched ahead
  std::uint64_t fetched_ = 0;   ///< commands for which a fetch was begun
  std::uint64_t boundary_ = 0;  ///< 1 + commands before the last fetch
  std::uint64_t issued_ = 0;    ///< 1 + commands before the last call or loop
  double fetch_due_ = kNever;   ///< cycle of the fetch that dispatch waits for
  std::uint64_t last_end_ = 0;
  std::uint32_t loop_ = 0;
  std::array<std::array<std::uint64_t, kQueues>, 2> loop_commands_{};  ///< last of each loop
  hw::OperandStream reads_;
  hw::SumTraffic sums_;
  std::uint64_t sums_known_ = 0;  ///< cycle up to which the array had advanced for them
  // Of the load in progress.
  double taken_ = 0, load_done_ = 0;
  double before_last_ = 0;      ///< when the expander has taken all but the last group of a load
  double expander_free_ = 0;    ///< when it has taken all so far
  hw::StoreSetUp load_set_up_;  ///< of stages before the anchor
  bool stages_begun_ = false;
  std::uint64_t loads_complete_ = 0;  ///< cycle with which the loads so far are, but those placing
  hw::StoreSetUp set_up_;
  // Of the store in progress.
  double row_done_ = 0, written_ = 0, store_now_ = 0;
  std::uint64_t row_ = 0;
  ReplayRows columns_;
  struct Arrival {
    double first = 0, last = 0;
  };
  // Of the operands that were asked for last.
  std::uint64_t operands_begun_ = 0;  ///< commands of the store unit up to the one that has them
  double operands_now_ = 0;
  std::array<Arrival, 2> operands_at_;  ///< of the two halves of the room for them
};

}  // namespace systole::mapper

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "base/accounting.h"
#include "hw/machine/machine.h"
#include "hw/program/dispatch.h"
#include "hw/program/program.h"
#include "tlm/common/observer.h"
#include "tlm/common/time.h"
#include "tlm/core/program_reader.h"
#include "tlm/core/scoreboard.h"
#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {

/// Takes commands from the program reader, dispatches one a cycle into the reservation stations of
/// the load, compute and store units, and tracks hazards by address range. Commands of one unit
/// execute in order; across units, whatever has no hazard overlaps. A command of the host is a
/// fence: it begins when all before it have completed, and what follows waits for it.
class CommandProcessor : public sc_core::sc_module {
 public:
  /// States shown in waveforms.
  enum State : std::uint8_t {
    kIdle,
    kDispatch,
    kWaitFetch,
    kWaitStation,
    kDrain,
    kWaitHost,
    kHostCall,
    kStates  ///< how many there are
  };

  const std::unique_ptr<DmaPort> fetch;

  CommandProcessor(const sc_core::sc_module_name& name, const hw::Machine& machine,
                   const DmaFactory& make_dma);

  /// Runs the program whose header is at `address` of the memory. Returns at once.
  void start(std::uint64_t address);
  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] const sc_core::sc_event& finished() const noexcept { return finished_; }

  /// 1 + position of the command that the host has to execute, 0: none.
  [[nodiscard]] std::uint64_t host_call() const noexcept { return host_call_; }
  [[nodiscard]] const sc_core::sc_event& host_called() const noexcept { return host_called_; }
  /// Its byte address in memory.
  [[nodiscard]] std::uint64_t host_call_address() const {
    return host_call_ == 0 ? 0 : reader_.address_of(host_call_ - 1);
  }
  /// The results of that command are in memory. Nothing without one.
  void complete_host_call();
  /// What was wrong with the program that ran last; empty: nothing.
  [[nodiscard]] const std::string& fault() const noexcept { return reader_.fault(); }

  /// See ProgramReader.
  void share_values(ValueQueue& values) noexcept { reader_.share_values(values); }

  // For the units.

  /// Before a unit computes values by itself.
  void await_values() { reader_.await_values(); }
  /// Blocks until the unit has a command; the cycles so far were idle in `account` or, while a
  /// program runs, stalled for its cause `no_command`.
  Entry& next(hw::Unit unit, hw::BlockAccount& account, std::size_t no_command);
  /// Whether next() would return at once.
  [[nodiscard]] bool has(hw::Unit unit) const {
    return !queues_[static_cast<std::size_t>(unit)].empty();
  }
  /// The command that the unit takes `after` so many others, if it has been dispatched; else null.
  [[nodiscard]] Entry* waiting(hw::Unit unit, std::size_t after) const {
    const auto& queue = queues_[static_cast<std::size_t>(unit)];
    return after < queue.size() ? queue[after] : nullptr;
  }
  /// Notified when a command of the unit has been dispatched.
  [[nodiscard]] const sc_core::sc_event& dispatched(hw::Unit unit) const noexcept {
    return queued_[static_cast<std::size_t>(unit)];
  }
  /// Notified when a command has completed.
  [[nodiscard]] const sc_core::sc_event& completed() const noexcept { return slot_free_; }
  /// Blocks until the entry's hazards are clear.
  void wait_ready(const Entry& entry);
  /// The unit has read its operands for the last time.
  void release(Entry& entry);
  /// It will have before `cycle`, which is now or later, but not after the entry's completion.
  void release_at(Entry& entry, std::uint64_t cycle);
  /// The entry has let go of its unit with cycle `released`, and its results are in memory at
  /// `completed` (now or later).
  void complete_at(Entry& entry, std::uint64_t started, std::uint64_t released,
                   std::uint64_t completed);

  [[nodiscard]] std::uint64_t cycle() const;
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  /// As far as it was fetched: what the commands refer to, not the commands.
  [[nodiscard]] const hw::Program& program() const noexcept { return reader_.program(); }

  /// Waveforms show the programs of a core as one: the next program's operators and commands have
  /// these numbers from its first on.
  void show_from(std::uint32_t op, std::uint32_t command) noexcept {
    shown_operator_ = op;
    shown_command_ = command;
  }
  [[nodiscard]] std::uint32_t shown_operator() const noexcept { return shown_operator_; }
  [[nodiscard]] std::uint32_t shown_command() const noexcept { return shown_command_; }

  void observe(Observer observer) { observers_.push_back(std::move(observer)); }
  /// The last run, in core cycles: start(), and the end. Commands are traced in between.
  [[nodiscard]] std::uint64_t start_cycle() const noexcept { return start_cycle_; }
  [[nodiscard]] std::uint64_t finish_cycle() const noexcept { return finish_cycle_; }
  /// From `cycle` on, time counts in the account or it does not.
  void set_counting(bool on, std::uint64_t cycle) { account_.set_counting(on, cycle); }
  [[nodiscard]] hw::BlockReport report(std::uint64_t end) const;
  void trace(sc_core::sc_trace_file* file) const override;

 private:
  void run();
  void retire();
  void release_due();
  /// What the host does before it issues a command.
  void issue(hw::Issue issue);
  void dispatch(const hw::Command& command, std::uint32_t index);
  void call_host(const hw::Command& command, std::uint32_t index);
  void drain();
  void wake(const std::vector<Entry*>& ready);
  [[nodiscard]] std::uint32_t capacity(hw::Unit unit) const;

  const hw::Machine machine_;
  const std::array<std::uint32_t, hw::kStations> stations_;
  const Clock clock_;
  std::array<std::deque<Entry*>, hw::kUnits> queues_;
  std::array<sc_core::sc_event, hw::kUnits> queued_, ready_;
  sc_core::sc_event started_, finished_, slot_free_, retire_, release_, host_called_, host_done_;
  ProgramReader reader_;
  Scoreboard scoreboard_;
  std::multimap<sc_core::sc_time, Entry*> retirements_;
  std::multimap<sc_core::sc_time, Entry*> releases_;
  /// Loops that a loop unroller has in flight: Gemmini's.
  static constexpr std::size_t kLoopsInFlight = 2;
  std::uint32_t loop_ = 0;                               ///< of the command to dispatch
  std::array<std::uint32_t, kLoopsInFlight> waiting_{};  ///< its commands that no unit took yet
  sc_core::sc_event taken_;
  bool running_ = false;
  std::optional<ProgramReader::Fetched> after_host_;  ///< came out while the host was called
  std::uint64_t host_call_ = 0;
  std::uint64_t start_cycle_ = 0, finish_cycle_ = 0;
  DispatchSteps steps_;             ///< of the command to dispatch
  std::uint32_t last_retired_ = 0;  ///< position of the command that was completed last
  std::array<std::uint32_t, hw::kUnits> last_of_unit_{};  ///< ... of each unit
  std::uint64_t commands_ = 0;
  std::uint32_t shown_operator_ = 0, shown_command_ = 0;
  std::uint8_t state_ = kIdle;                ///< traced
  std::uint32_t occupancy_[hw::kUnits] = {};  ///< traced
  std::vector<Observer> observers_;
  hw::BlockAccount account_;
};

}  // namespace systole::tlm_model

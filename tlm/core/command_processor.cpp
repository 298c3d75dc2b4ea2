#include "tlm/core/command_processor.h"

#include <algorithm>
#include <string>

namespace systole::tlm_model {
namespace {

constexpr std::size_t kFetchWait = 0;
constexpr std::size_t kStationFull = 1;
constexpr std::size_t kHostIssue = 2;
constexpr std::size_t kFence = 3;
constexpr std::size_t kHostOperator = 4;
/// Loops that the host has prepared: more than the loop unit takes at a time.
constexpr std::uint32_t kLoopsAhead = 8;

}  // namespace

CommandProcessor::CommandProcessor(const sc_core::sc_module_name& name, const hw::Machine& machine,
                                   const DmaFactory& make_dma)
    : sc_module(name),
      fetch(make_dma("fetch", machine, DmaUse::kFetch)),
      machine_(machine),
      stations_(hw::station_sizes(machine)),
      clock_(machine.core.clock_mhz),
      reader_("reader", machine, *fetch),
      scoreboard_(reader_.program()),
      account_("cycles", {{"fetch",
                           "the next command, or a chain or operand address that it needs, has not "
                           "arrived from memory"},
                          {"station_full", "the unit's reservation station has no free entry"},
                          {"host", "the host prepares a library call or configures a loop"},
                          {"fence", "commands before one of the host have not completed"},
                          {"host_operator", "the host executes a command"}}) {
  SC_HAS_PROCESS(CommandProcessor);
  SC_THREAD(run);
  SC_METHOD(retire);
  sensitive << retire_;
  dont_initialize();
  SC_METHOD(release_due);
  sensitive << release_;
  dont_initialize();
}

std::uint64_t CommandProcessor::cycle() const {
  return clock_.cycle_from(sc_core::sc_time_stamp());
}

void CommandProcessor::start(std::uint64_t address) {
  reader_.start(address);
  running_ = true;
  started_.notify(sc_core::SC_ZERO_TIME);
}

void CommandProcessor::run() {
  for (;;) {
    wait(started_);
    start_cycle_ = cycle();
    account_.idle_until(start_cycle_);
    for (;;) {
      steps_ = {};
      steps_.begun = cycle();
      state_ = kWaitFetch;
      const ProgramReader::Fetched fetched = after_host_ ? *after_host_ : reader_.next();
      after_host_.reset();
      clock_.wait_until(fetched.arrival);
      steps_.fetched = steps_.fenced = steps_.issued = steps_.room = cycle();
      state_ = kDispatch;
      account_.stall_until(cycle(), kFetchWait);
      if (fetched.command.opcode() == hw::Opcode::kEnd) break;
      if (fetched.command.opcode() == hw::Opcode::kHost) {
        call_host(fetched.command, fetched.index);
      } else {
        dispatch(fetched.command, fetched.index);
      }
    }
    // As gates know of what they cannot run.
    if (!fault().empty()) clock_.wait_until(cycle() + 1);
    drain();
    account_.idle_until(cycle());
    finish_cycle_ = cycle();
    running_ = false;
    state_ = kIdle;
    finished_.notify();
  }
}

void CommandProcessor::drain() {
  state_ = kDrain;
  while (!scoreboard_.empty()) wait(slot_free_);
}

void CommandProcessor::call_host(const hw::Command& command, std::uint32_t index) {
  issue(command.issue);
  if (!scoreboard_.empty()) {
    drain();
    steps_.room_by = last_retired_;
  }
  steps_.room = cycle();
  account_.stall_until(cycle(), kFence);
  clock_.wait_until(cycle() + 1);
  account_.busy_until(cycle());
  Entry* const entry = scoreboard_.dispatch(command, index, cycle());
  entry->steps = steps_;
  ++commands_;
  state_ = kHostCall;
  const std::uint64_t started = cycle();
  host_call_ = index + std::uint64_t{1};
  host_called_.notify();
  // The next command comes out meanwhile.
  while (host_call_ != 0) {
    if (!after_host_ && reader_.has_next()) after_host_ = reader_.next();
    if (after_host_) {
      wait(host_done_);
    } else {
      wait(host_done_ | reader_.arrived());
    }
  }
  complete_at(*entry, started, cycle(), cycle());
  while (!scoreboard_.empty()) wait(slot_free_);
  account_.stall_until(cycle(), kHostOperator);
  state_ = kDispatch;
}

void CommandProcessor::complete_host_call() {
  if (host_call_ == 0) return;
  host_call_ = 0;
  host_done_.notify();
}

std::uint32_t CommandProcessor::capacity(hw::Unit unit) const {
  const auto station = static_cast<std::size_t>(unit);
  if (station < hw::kStations) return stations_[station];
  return unit == hw::Unit::kLoop ? kLoopsAhead : 0;
}

void CommandProcessor::issue(hw::Issue issue) {
  if (issue == hw::Issue::kNone) return;
  state_ = kWaitHost;
  const bool call = issue == hw::Issue::kCall;
  if (call && !scoreboard_.empty()) {
    while (!scoreboard_.empty()) wait(slot_free_);
    steps_.fence_by = last_retired_;
  }
  steps_.fenced = cycle();
  ++loop_;
  while (waiting_[loop_ % kLoopsInFlight] != 0) wait(taken_);
  clock_.wait_until(cycle() + (call ? machine_.core.call_cycles : machine_.core.loop_cycles));
  account_.stall_until(cycle(), kHostIssue);
  steps_.issued = steps_.room = cycle();
}

void CommandProcessor::dispatch(const hw::Command& command, std::uint32_t index) {
  issue(command.issue);
  const hw::Unit unit = hw::unit_of(command.opcode());
  while (scoreboard_.in_flight(unit) >= capacity(unit)) {
    state_ = kWaitStation;
    wait(slot_free_);
    steps_.room_by = last_of_unit_[static_cast<std::size_t>(unit)];
  }
  steps_.room = cycle();
  state_ = kDispatch;
  account_.stall_until(cycle(), kStationFull);
  // The loop unit has command queues of its own.
  if (unit != hw::Unit::kLoop) clock_.wait_until(cycle() + 1);
  account_.busy_until(cycle());
  Entry* entry = scoreboard_.dispatch(command, index, cycle());
  entry->loop = loop_;
  entry->steps = steps_;
  ++waiting_[loop_ % kLoopsInFlight];
  const auto slot = static_cast<std::size_t>(unit);
  occupancy_[slot] = scoreboard_.in_flight(unit);
  queues_[slot].push_back(entry);
  queued_[slot].notify();
  ++commands_;
}

Entry& CommandProcessor::next(hw::Unit unit, hw::BlockAccount& account, std::size_t no_command) {
  const auto slot = static_cast<std::size_t>(unit);
  while (queues_[slot].empty()) wait(queued_[slot]);
  // Before the program began there was nothing to wait for.
  account.idle_until(start_cycle_);
  account.stall_until(cycle(), no_command);
  Entry& entry = *queues_[slot].front();
  queues_[slot].pop_front();
  if (--waiting_[entry.loop % kLoopsInFlight] == 0) taken_.notify();
  return entry;
}

void CommandProcessor::wait_ready(const Entry& entry) {
  while (!entry.is_ready()) wait(ready_[static_cast<std::size_t>(entry.unit)]);
}

void CommandProcessor::wake(const std::vector<Entry*>& ready) {
  for (const Entry* entry : ready) ready_[static_cast<std::size_t>(entry->unit)].notify();
}

void CommandProcessor::release(Entry& entry) { wake(scoreboard_.release(&entry, cycle())); }

void CommandProcessor::release_at(Entry& entry, std::uint64_t cycle) {
  releases_.emplace(clock_.edge(cycle), &entry);
  release_due();
}

void CommandProcessor::release_due() {
  while (!releases_.empty() && releases_.begin()->first <= sc_core::sc_time_stamp()) {
    Entry* const entry = releases_.begin()->second;
    releases_.erase(releases_.begin());
    release(*entry);
  }
  if (!releases_.empty()) release_.notify(releases_.begin()->first - sc_core::sc_time_stamp());
}

void CommandProcessor::complete_at(Entry& entry, std::uint64_t started, std::uint64_t released,
                                   std::uint64_t completed) {
  CommandTrace& trace = entry.trace;
  trace.index = entry.index;
  trace.unit = entry.unit;
  trace.opcode = entry.command.opcode();
  trace.op = entry.command.op;
  trace.dispatched = entry.dispatched;
  trace.started = started;
  trace.released = released;
  trace.completed = std::max(completed, cycle());
  trace.was_blocked = entry.was_blocked;
  trace.blocker = entry.blocker_index;
  trace.blocker_released = entry.blocker_released;
  trace.ready = entry.ready;
  trace.dispatch = entry.steps;
  trace.stalled = entry.stalled;
  trace.events = entry.events;
  retirements_.emplace(clock_.edge(trace.completed), &entry);
  const sc_core::sc_time first = retirements_.begin()->first;
  retire_.notify(first - sc_core::sc_time_stamp());
}

void CommandProcessor::retire() {
  while (!retirements_.empty() && retirements_.begin()->first <= sc_core::sc_time_stamp()) {
    Entry* const entry = retirements_.begin()->second;
    retirements_.erase(retirements_.begin());
    CommandTrace done = entry->trace;
    done.operands_read = entry->operands_read == 0 ? done.completed : entry->operands_read;
    reader_.complete(entry->command);
    wake(scoreboard_.complete(entry, cycle()));
    const auto slot = static_cast<std::size_t>(done.unit);
    occupancy_[slot] = scoreboard_.in_flight(done.unit);
    last_retired_ = last_of_unit_[slot] = done.index;
    for (const Observer& observer : observers_) observer(done);
    slot_free_.notify();
  }
  if (!retirements_.empty()) {
    retire_.notify(retirements_.begin()->first - sc_core::sc_time_stamp());
  }
}

hw::BlockReport CommandProcessor::report(std::uint64_t end) const {
  return account_.report("command_processor", end,
                         {{"commands", "commands", "commands dispatched", commands_},
                          {"fetched_bytes", "bytes", "program bytes read", fetch->stats().bytes}});
}

void CommandProcessor::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, state_, prefix + "state", 3);
  sc_core::sc_trace(file, occupancy_[0], prefix + "load_queue");
  sc_core::sc_trace(file, occupancy_[1], prefix + "compute_queue");
  sc_core::sc_trace(file, occupancy_[2], prefix + "store_queue");
  sc_core::sc_trace(file, commands_, prefix + "dispatched");
}

}  // namespace systole::tlm_model

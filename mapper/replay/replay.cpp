#include "mapper/replay/replay.h"

#include <algorithm>

#include "hw/program/dispatch.h"
#include "hw/program/program_ranges.h"

namespace systole::mapper {
namespace {

std::size_t power_at_least(std::size_t value) {
  std::size_t power = 1;
  while (power < value) power *= 2;
  return power;
}

/// Numbers whose times are kept, far more than are ever in flight.
constexpr std::size_t kKeptTimes = 128;

bool overlap(const ReplayRanges::Span& a, const ReplayRanges::Span& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool any_overlap(const ReplayRanges::Span* a, unsigned count_a, const ReplayRanges::Span* b,
                 unsigned count_b) {
  for (unsigned i = 0; i < count_a; ++i) {
    for (unsigned j = 0; j < count_b; ++j) {
      if (overlap(a[i], b[j])) return true;
    }
  }
  return false;
}

bool writes_what_touches(const ReplayRanges& old, const ReplayRanges& young) {
  const unsigned spaces = old.written_spaces;
  return ((spaces & young.written_spaces) != 0 &&
          any_overlap(old.write.data(), old.writes, young.write.data(), young.writes)) ||
         ((spaces & young.read_spaces) != 0 &&
          any_overlap(old.write.data(), old.writes, young.read.data(), young.reads));
}

/// hw::writes_what_is_read().
bool writes_what_reads(const ReplayRanges& old, const ReplayRanges& young) {
  constexpr unsigned kSpaces = 1U << static_cast<unsigned>(hw::Space::kScratchpad) |
                               1U << static_cast<unsigned>(hw::Space::kDram);
  if ((old.written_spaces & young.read_spaces & kSpaces) == 0) return false;
  return std::any_of(
      young.read.data(), young.read.data() + young.reads, [&](const ReplayRanges::Span& read) {
        return (kSpaces & read.space()) != 0 && any_overlap(old.write.data(), old.writes, &read, 1);
      });
}

bool reads_what_writes(const ReplayRanges& old, const ReplayRanges& young) {
  return (old.read_spaces & young.written_spaces) != 0 &&
         any_overlap(old.read.data(), old.reads, young.write.data(), young.writes);
}

}  // namespace

Replay::Queue::Queue(std::uint32_t station)
    : capacity(station),
      works(power_at_least(station)),
      ranges(power_at_least(4 * std::size_t{station})),
      completed(std::max(kKeptTimes, power_at_least(4 * std::size_t{station}))),
      released(completed.size()),
      taken(completed.size()) {}

void Replay::Queue::take() {
  if (ended == dispatched) return;
  taken[ended & (taken.size() - 1)] = std::max(free, work(ended).dispatched);
}

Replay::Replay(const hw::Machine& machine, Service service)
    : machine_(machine),
      memory_(machine),
      fetch_port_(machine.dma.outstanding_reads),
      load_port_(machine.dma.outstanding_reads, true),
      write_port_(machine.dma.outstanding_writes, true),
      read_port_(machine.dma.outstanding_reads, true),
      scratchpad_(machine.scratchpad.banks, machine.scratchpad.ports),
      bank_size_(machine.scratchpad.bank_bytes()),
      load_access_(hw::load_access_size(machine)),
      piece_bytes_(hw::result_piece_bytes(machine, false)),
      queues_{Queue(hw::station_sizes(machine)[kLoad]), Queue(hw::station_sizes(machine)[kCompute]),
              Queue(hw::station_sizes(machine)[kStore])},
      loops_(machine.unroller.loops == 0 ? nullptr : std::make_shared<ReplayLoops>(machine)),
      reads_(machine),
      sums_(machine) {
  if (service != Service::kRequests) return;
  requests_.emplace(machine);
  if (sums_.serves()) reads_.steps().keep_sums();
}

bool Replay::knows_requests(const hw::Machine& machine) {
  return RequestMemory::models(machine) && machine.attention.lines == 0 &&
         machine.unroller.loops == 0;
}

void Replay::run(const hw::Program& program, std::size_t first, std::size_t last) {
  if (ends_.size() < program.operators.size()) ends_.resize(program.operators.size(), 0);
  // Stores that encode name operators after those of the program so far.
  for (std::size_t i = first; i < last; ++i) {
    const std::uint32_t op = program.commands[i].op;
    if (ends_.size() <= op) ends_.resize(op + std::size_t{1}, 0);
  }
  for (std::size_t i = first; i < last; ++i) {
    while (!dispatch_next(program, i)) step();
  }
}

std::uint64_t Replay::finish() {
  fetch_due_ = kNever;
  while (step()) {
  }
  return last_end_;
}

std::uint64_t Replay::end() const { return Replay(*this).finish(); }

std::uint64_t Replay::ready_of(const ReplayWork& work) const {
  std::uint64_t ready = work.dispatched;
  for (std::size_t u = 0; u < kQueues; ++u) {
    const Queue& queue = queues_[u];
    if (std::uint64_t n = work.after_completion[u]; n != 0) {
      ready = std::max(ready, queue.completion(n - 1));
      for (std::uint64_t also = work.also_after[u]; also != 0; also >>= 1) {
        --n;
        if ((also & 1) != 0) ready = std::max(ready, queue.completion(n - 1));
      }
    }
    if (const std::uint64_t n = work.after_release[u]; n != 0) {
      ready = std::max(ready, queue.release(n - 1));
    }
  }
  return ready;
}

bool Replay::knows_readable(const ReplayWork& work) const {
  for (std::size_t u = 0; u < kQueues; ++u) {
    if (work.read_after[u] == 0) continue;
    const auto first = static_cast<std::uint64_t>(__builtin_ctzll(work.read_after[u]));
    if (work.after_completion[u] - first > queues_[u].ended) return false;
  }
  return true;
}

std::uint64_t Replay::readable_at(const ReplayWork& work) const {
  std::uint64_t readable = work.dispatched;
  for (std::size_t u = 0; u < kQueues; ++u) {
    std::uint64_t n = work.after_completion[u];
    for (std::uint64_t after = work.read_after[u]; after != 0; after >>= 1, --n) {
      if ((after & 1) != 0) readable = std::max(readable, queues_[u].completion(n - 1));
    }
  }
  return readable;
}

std::uint64_t Replay::next_for_operands() const {
  const Queue& queue = queues_[kStore];
  if (queue.phase == Phase::kIdle) return queue.ended;
  const ReplayWork& work = queue.work(queue.ended);
  const bool has_used = requests_ && requests_->learnt == work.m;
  return queue.ended + (work.operands == 0 || has_used ? 1 : 0);
}

double Replay::operands_due() const {
  const Queue& queue = queues_[kStore];
  const bool runs = queue.phase != Phase::kIdle;
  const std::uint64_t number = next_for_operands();
  if (number >= queue.dispatched || operands_begun_ > number) return kNever;
  const ReplayWork& work = queue.work(number);
  if (work.operands == 0) return kNever;
  if (runs && number == queue.ended) return static_cast<double>(queue.started);
  if (!knows_readable(work)) return kNever;
  // The command before has started, and its last results have left if it has operands.
  std::uint64_t due = readable_at(work);
  if (number != 0) due = std::max(due, queue.started + 1);
  if (requests_) {
    due = std::max(due, requests_->operands_free);
  } else if (!runs && operands_begun_ == queue.ended && operands_begun_ != 0) {
    due = std::max(due, queue.free);
  }
  return static_cast<double>(due);
}

bool Replay::knows_ready(const ReplayWork& work) const {
  for (std::size_t u = 0; u < kQueues; ++u) {
    const Queue& other = queues_[u];
    if (work.after_completion[u] > other.ended || work.after_release[u] > other.read) return false;
  }
  return true;
}

double Replay::start_of(const Queue& queue) const {
  if (queue.ended == queue.dispatched) return kNever;
  const ReplayWork& work = queue.work(queue.ended);
  if (!knows_ready(work)) return kNever;
  std::uint64_t start = std::max(queue.free, ready_of(work));
  if (work.is_staged()) {
    if (!queue.placing.empty()) return kNever;
    start = std::max(start, loads_complete_);
  }
  return static_cast<double>(start);
}

bool Replay::step() {
  std::size_t unit = kQueues;
  double earliest = kNever;
  double horizon = fetch_due_;
  for (std::size_t u = 0; u < kQueues; ++u) {
    Queue& queue = queues_[u];
    if (queue.phase == Phase::kIdle && !queue.is_due) {
      queue.time = start_of(queue);
      queue.is_due = queue.time < kNever;
    }
    // Ports issue when all else that happens at that time has happened.
    const bool is_first = requests_ && u == kCompute && queue.time == earliest && earliest < kNever;
    if (queue.time < earliest || is_first) {
      horizon = std::min(horizon, earliest);
      earliest = queue.time;
      unit = u;
    } else {
      horizon = std::min(horizon, queue.time);
    }
  }
  const bool asks = requests_ && requests_->asks_for_operands;
  const double operands = asks ? operands_now_ : operands_due();
  double reads = kNever;
  if (requests_ && requests_->reader.is_active) reads = requests_->reader.time;
  const std::vector<Leaving>& leaving = queues_[kCompute].leaving;
  double leaves = leaving.empty() ? kNever : static_cast<double>(leaving.front().left);
  if (const Queue& loads = queues_[kLoad]; !loads.placing.empty()) {
    const auto places = static_cast<double>(loads.places_at());
    if (places <= std::min({earliest, operands, reads, leaves})) {
      if (places >= fetch_due_) return false;
      place_loads(static_cast<std::uint64_t>(places));
      return true;
    }
    horizon = std::min(horizon, places);
    leaves = std::min(leaves, places);
  }
  if (leaves <= std::min({earliest, operands, reads}) && leaves < kNever) {
    if (leaves >= fetch_due_) return false;
    leave_array();
    return true;
  }
  if (reads <= std::min(earliest, operands) && reads < kNever) {
    if (reads >= fetch_due_) return false;
    step_reader(std::min({earliest, operands, leaves, fetch_due_}));
    return true;
  }
  // Of ports that issue at the same time theirs is the last, but the store in progress needs them.
  const bool needed = unit == kStore && queues_[kStore].phase != Phase::kIdle &&
                      operands_begun_ <= queues_[kStore].ended &&
                      next_for_operands() == queues_[kStore].ended;
  if (operands < earliest || (operands == earliest && needed)) {
    if (operands >= fetch_due_) return false;
    if (!asks) begin_operands(operands);
    if (requests_) step_operand_requests(std::min({earliest, reads, leaves, fetch_due_}));
    return true;
  }
  horizon = std::min({horizon, reads, operands, leaves});
  if (unit == kQueues || earliest >= std::min(fetch_due_, kNever)) return false;
  if (requests_) requests_->memory.retire(static_cast<std::uint64_t>(earliest));
  act(unit, horizon);
  return true;
}

void Replay::fetch(std::size_t commands) {
  // The program is in memory after all that it works on.
  const std::uint64_t capacity = std::uint64_t{machine_.dram.mib} << 20;
  ReplayRows rows{(capacity / 2 + fetched_ * hw::kCommandBytes) % capacity, 0,
                  commands * hw::kCommandBytes, 0, 1};
  while (rows.left != 0) {
    arrival_ =
        memory_
            .move(false, fetch_port_, rows, static_cast<double>(dispatch_), 0, fetch_port_.window())
            .last_done;
  }
  fetched_ += commands;
}

void Replay::fetch_chunk(const hw::Program& program, std::size_t index) {
  const std::size_t chunk = machine_.core.fetch_commands;
  if (commands_ % chunk != 0 || boundary_ == commands_ + 1) return;
  // What happens before the fetch that dispatch waits for takes the memory before it.
  fetch_due_ = std::max(static_cast<double>(dispatch_), arrival_);
  while (step()) {
  }
  if (fetched_ == commands_) fetch(std::min(chunk, program.commands.size() - index));
  dispatch_ = std::max(dispatch_, static_cast<std::uint64_t>(arrival_));
  if (program.commands.size() - index > chunk) {
    fetch(std::min(chunk, program.commands.size() - index - chunk));
  }
  boundary_ = commands_ + 1;
  fetch_due_ = kNever;
}

// The place of a command is free when it has completed, which need not be in their order: a move
// completes before a store ahead of it whose writes are in flight. False: nothing can end.
bool Replay::wait_for_place(Queue& queue) {
  while (queue.places_taken() >= queue.capacity) {
    const auto first = std::min_element(queue.completing.begin(), queue.completing.end());
    if (first == queue.completing.end()) {
      if (!step()) return false;
      continue;
    }
    // What happens before may complete another one earlier.
    const std::uint64_t free = *first;
    if (free > dispatch_ && step_before(static_cast<double>(free))) continue;
    queue.completing.erase(first);
    dispatch_ = std::max(dispatch_, free);
  }
  return true;
}

bool Replay::step_before(double cycle) {
  fetch_due_ = cycle;
  const bool acts = step();
  fetch_due_ = kNever;
  return acts;
}

// False: something has to end first.
bool Replay::dispatch_next(const hw::Program& program, std::size_t index) {
  const hw::Command& command = program.commands[index];
  if (requests_) {
    wait_for_command(program, index);
  } else if (machine_.unroller.loops == 0) {
    // The host sends what a core with an unroller runs.
    fetch_chunk(program, index);
  }
  if (command.opcode() == hw::Opcode::kEnd) {
    last_end_ = std::max(last_end_, dispatch_);
    return true;
  }
  if (!issue(command)) return false;
  if (command.opcode() == hw::Opcode::kHost) return dispatch_host(program, index);
  if (command.opcode() == hw::Opcode::kLoop) return dispatch_loops(program, index);
  const auto unit = static_cast<std::size_t>(hw::unit_of(command.opcode()));
  Queue& queue = queues_[unit];
  const std::uint64_t number = queue.dispatched;
  if (!wait_for_place(queue)) return false;
  ++dispatch_;
  ReplayWork& work = queue.work(number);
  decode_work(command, program, machine_, attention_, work);
  if (requests_ && unit == kStore) {
    requests_->flow_of(number) = decode_flow(command, program, machine_, work);
  }
  if (requests_ && work.is_staged()) {
    const auto& load = *command.as<hw::cmd::Load>();
    requests_->staged_of(number) = {load, hw::chain_of(*load.pre, program), machine_,
                                    work.to_accumulator};
  }
  work.dispatched = dispatch_;
  work.number = commands_;
  ReplayRanges& ranges = queue.ranges_of(number);
  ranges.clear();
  hw::for_each_range(command, program, [&](const hw::Range& range) { ranges.add(range); });
  find_hazards(unit);
  loop_commands_[loop_ % 2][unit] = number + 1;
  ++queue.dispatched;
  if (number == queue.ended) queue.take();
  ++commands_;
  return true;
}

// The loops of a call take their time together, with its first command.
bool Replay::dispatch_loops(const hw::Program& program, std::size_t index) {
  for (const Queue& queue : queues_) {
    if (!queue.is_drained()) return false;
  }
  dispatch_ = std::max(dispatch_, last_end_);
  const hw::Command& command = program.commands[index];
  if (command.issue == hw::Issue::kCall) dispatch_ += loops_->cycles(program, index);
  last_end_ = std::max(last_end_, dispatch_);
  ends_[command.op] = std::max(ends_[command.op], dispatch_);
  ++commands_;
  return true;
}

bool Replay::dispatch_host(const hw::Program& program, std::size_t index) {
  for (const Queue& queue : queues_) {
    if (!queue.is_drained()) return false;
  }
  dispatch_ = std::max(dispatch_, last_end_);
  const hw::Command& command = program.commands[index];
  ReplayWork work;
  decode_work(command, program, machine_, attention_, work);
  // An interrupt, the command's position read, the interrupt acknowledged, completion written.
  const double handshake_ns = machine_.host.interrupt_ns + 3.0 * machine_.host.mmio_ns;
  const std::uint64_t called = dispatch_ + 1;
  const std::uint64_t done =
      called + work.duration +
      static_cast<std::uint64_t>(handshake_ns * machine_.core.clock_mhz / 1000.0);
  if (requests_) requests_->reader.complete(commands_, done);
  ++commands_;
  dispatch_ = called;
  // The next command comes out meanwhile.
  if (requests_ && index + 1 < program.commands.size()) wait_for_command(program, index + 1);
  dispatch_ = done;
  last_end_ = std::max(last_end_, dispatch_);
  ends_[command.op] = std::max(ends_[command.op], dispatch_);
  return true;
}

// What the host does first, once for a command. False: it waits for commands that have not ended.
bool Replay::issue(const hw::Command& command) {
  if (command.issue == hw::Issue::kNone || issued_ == commands_ + 1) return true;
  const bool call = command.issue == hw::Issue::kCall;
  std::uint64_t after = dispatch_;
  for (std::size_t u = 0; u < kQueues; ++u) {
    const Queue& queue = queues_[u];
    if (call && !queue.is_drained()) return false;
    if (call) after = std::max(after, last_end_);
    // Loops that a loop unroller has in flight: two. A unit takes its next command when it is free,
    // and waits with it for hazards.
    const std::uint64_t needed = loop_commands_[(loop_ + 1) % 2][u];
    if (needed > std::min(queue.dispatched, queue.ended + 1)) return false;
    if (needed != 0) after = std::max(after, queue.taking(needed - 1));
  }
  ++loop_;
  dispatch_ = after + (call ? machine_.core.call_cycles : machine_.core.loop_cycles);
  issued_ = commands_ + 1;
  return true;
}

void Replay::find_hazards(std::size_t unit) {
  const std::uint64_t number = queues_[unit].dispatched;
  ReplayWork& work = queues_[unit].work(number);
  const ReplayRanges& young = queues_[unit].ranges_of(number);
  for (std::size_t u = 0; u < kQueues; ++u) {
    Queue& queue = queues_[u];
    // The array keeps its accumulations in order by itself, and reads disturb nothing.
    if (unit == kCompute && u == kCompute && work.opcode == hw::Opcode::kMatmul &&
        attention_ == 0) {
      continue;
    }
    // The oldest ones that had completed before are no matter any more.
    while (queue.gone < queue.settled() && queue.completion(queue.gone) <= work.dispatched)
      ++queue.gone;
    const std::uint64_t kept = queue.ranges.size();
    const std::uint64_t oldest =
        std::max(queue.gone, queue.dispatched - std::min(queue.dispatched, kept));
    for (std::uint64_t n = queue.dispatched; n > oldest; --n) {
      const ReplayRanges& old = queue.ranges_of(n - 1);
      // A load keeps what it reads until it completes.
      if (writes_what_touches(old, young) || (u == kLoad && reads_what_writes(old, young))) {
        if (work.after_completion[u] == 0) work.after_completion[u] = n;
        const std::uint64_t before = work.after_completion[u] - n;
        if (before != 0 && before <= 64) work.also_after[u] |= std::uint64_t{1} << (before - 1);
        if (unit == kStore && before < 64 && writes_what_reads(old, young)) {
          work.read_after[u] |= std::uint64_t{1} << before;
        }
        // Matmuls complete in their order.
        if (u == kCompute) break;
      } else if (work.after_release[u] == 0 && reads_what_writes(old, young)) {
        work.after_release[u] = n;
      }
    }
  }
}

void Replay::release_command(Queue& queue, std::uint64_t released) {
  if (queue.read > queue.ended) return;
  if (queue.ended != 0) released = std::max(released, queue.release(queue.ended - 1));
  queue.released[queue.ended & (queue.released.size() - 1)] = released;
  ++queue.read;
}

void Replay::end_command(Queue& queue, std::uint64_t released, std::uint64_t completed,
                         std::uint64_t free) {
  release_command(queue, released);
  queue.completed[queue.ended & (queue.completed.size() - 1)] = completed;
  if (&queue == &queues_[kLoad]) loads_complete_ = std::max(loads_complete_, completed);
  ++queue.ended;
  const bool is_placing = !queue.placing.empty() && queue.placing.back().number + 1 == queue.ended;
  if (queue.leaving.empty() && !is_placing) complete_command(queue, queue.ended - 1);
  queue.free = free;
  queue.take();
  queue.phase = Phase::kIdle;
  queue.is_due = false;
}

void Replay::complete_command(Queue& queue, std::uint64_t number) {
  const ReplayWork& work = queue.work(number);
  complete_command(queue, work.number, work.op, queue.completion(number));
}

void Replay::complete_command(Queue& queue, std::uint64_t command, std::uint32_t op,
                              std::uint64_t completed) {
  queue.completing.push_back(completed);
  if (requests_) requests_->reader.complete(command, completed);
  ends_[op] = std::max(ends_[op], completed);
  last_end_ = std::max(last_end_, completed);
}

void Replay::act(std::size_t unit, double horizon) {
  Queue& queue = queues_[unit];
  if (queue.phase == Phase::kIdle) {
    queue.started = static_cast<std::uint64_t>(queue.time);
    if (unit == kLoad) {
      requests_ ? begin_load_requests(queue) : begin_load(queue);
    } else if (unit == kCompute) {
      begin_matmul(queue);
      return;
    } else {
      begin_store(queue);
      return;
    }
  }
  if (unit == kLoad) {
    requests_ ? step_load_requests(queue, horizon) : step_load(queue, horizon);
  } else if (unit == kCompute) {
    end_matmul(queue);
  } else {
    step_store(queue, horizon);
  }
}

}  // namespace systole::mapper

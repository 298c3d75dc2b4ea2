#include "mapper/replay/replay_requests.h"

#include <algorithm>
#include <utility>

#include "base/round.h"
#include "hw/core/bank_words.h"
#include "hw/program/program_fetch.h"
#include "hw/program/program_image.h"
#include "mapper/replay/replay.h"

/// What a replay by request does otherwise: request by request as tlm/dma/request_dma.h, row by row
/// as tlm/core/load_unit.h and store_unit.h.
namespace systole::mapper {
namespace {

/// A unit's rows of one of its tiles in DRAM, from row `first` on.
ReplayRows rows_from(const ReplayRows& all, std::uint64_t first, std::uint64_t rows) {
  return {all.address + first * all.pitch, all.pitch, all.bytes, 0, rows};
}

}  // namespace

void Replay::write_input(const ReplayRows& input) {
  if (!requests_) return;
  dispatch_ = begin_ = requests_->memory.start(machine_.host, input);
}

void ReplayRequests::Reader::begin(Chunk fetched) {
  chunk = std::move(fetched);
  rows = chunk.rows;
  rows.not_before = std::max(rows.not_before, look.end());
  time = std::max(time, static_cast<double>(rows.not_before));
  arrival = 0;
  next = 0;
  is_active = true;
  has_commands = false;
}

void ReplayRequests::Reader::complete(std::uint64_t command, std::uint64_t cycle) {
  const auto is_its = [&](const Referred& one) { return one.command == command; };
  const auto one = std::find_if(in_use.begin(), in_use.end(), is_its);
  if (one == in_use.end()) return;
  chains.leave(one->chain, cycle);
  in_use.erase(one);
  if (!waits_for) return;
  const std::optional<std::uint64_t> free = chains.free_from(*waits_for);
  if (!free) return;
  time = std::max(waits_since, static_cast<double>(*free));
  waits_for.reset();
}

ReplayRows ReplayRequests::Reader::row_of(const Referred& one, std::uint64_t program) const {
  if (one.is_chain()) return {program + header.chain(one.chain), 0, header.chain_bytes, 0, 1};
  return {program + header.operand(one.entries.first), 0, one.entries.count * hw::kOperandTileBytes,
          0, 1};
}

void ReplayRequests::Reader::take(const Referred& one) {
  referred = std::max(referred, one.is_chain() ? look.take_chain(arrival, header.chain_bytes)
                                               : look.take_entry(arrival));
}

void ReplayRequests::Reader::look_at(std::uint64_t command) {
  for (; looked <= command; ++looked) look.next(commands);
}

void ReplayRequests::Reader::know_until(std::uint64_t command) {
  if (known == chunk.first && known < command) first_out = static_cast<std::uint64_t>(time);
  for (; known < command; ++known) {
    arrivals[known % arrivals.size()] = std::max(commands, referred);
    referred = 0;
  }
}

// The next chunk of commands. The header comes with the first one, which is read whole.
void Replay::begin_fetch(const hw::Program& program, std::size_t index, std::uint64_t cycle) {
  ReplayRequests::Reader& reader = requests_->reader;
  if (reader.header.commands != program.commands.size() ||
      reader.header.chains != program.chains.size()) {
    reader.header = hw::header_of(program);
  }
  ReplayRequests::Reader::Chunk chunk;
  chunk.first = fetched_;
  chunk.count =
      std::min<std::size_t>(machine_.core.fetch_commands, program.commands.size() - index);
  std::uint64_t begin = hw::kHeaderBytes + fetched_ * hw::kCommandBytes;
  std::uint64_t bytes = chunk.count * hw::kCommandBytes;
  if (fetched_ == 0) {
    // The header says only then how many commands there are.
    bytes = begin + machine_.core.fetch_commands * hw::kCommandBytes;
    begin = 0;
  }
  chunk.rows = {{program_address_ + begin, 0, bytes, 0, 1}, cycle, 0};
  for (std::size_t i = 0; i < chunk.count; ++i) {
    const std::uint64_t number = fetched_ + i;
    reader.arrivals[number % reader.arrivals.size()] = ReplayRequests::Reader::kNotKnown;
    const hw::References to = hw::references_of(program.commands[index + i]);
    for (std::size_t c = 0; c < to.chain_count; ++c) {
      chunk.referred.push_back({number, to.chains[c], {}});
    }
    const hw::OperandEntries entries = hw::operand_entries(program.commands[index + i], program);
    if (entries.count != 0) chunk.referred.push_back({number, 0, entries});
  }
  fetched_ += chunk.count;
  reader.fetch(std::move(chunk));
}

// Chains and operands in the order of the commands, each of which is known to be ready with the
// last of its own. Returns as soon as commands are: they may be dispatched before the next chain is
// asked for.
void Replay::read_chains(double horizon) {
  ReplayRequests::Reader& reader = requests_->reader;
  const auto on_row = [&](std::uint64_t done) { reader.arrival = done; };
  for (; reader.next < reader.chunk.referred.size(); ++reader.next) {
    const ReplayRequests::Reader::Referred& one = reader.chunk.referred[reader.next];
    if (reader.known < one.command) return reader.know_until(one.command);
    if (reader.rows.left.left == 0) {
      reader.look_at(one.command);
      std::uint64_t free = 0;
      if (one.is_chain()) {
        const bool is_held = reader.chains.holds(one.chain);
        const std::optional<std::uint64_t> slot_free = reader.chains.free_from(one.chain);
        if (!is_held && !slot_free) {
          reader.waits_for = one.chain;
          reader.waits_since = reader.time;
          reader.time = kNever;
          return;
        }
        reader.chains.use(one.chain);
        reader.in_use.push_back(one);
        if (is_held) continue;
        free = *slot_free;
      }
      reader.rows = {reader.row_of(one, program_address_), reader.look.asks(free), 0};
    }
    if (!read_rows(requests_->fetch, reader.rows, reader.time, horizon, on_row)) return;
    reader.take(one);
  }
  reader.look_at(reader.chunk.first + reader.chunk.count - 1);
  reader.know_until(reader.chunk.first + reader.chunk.count);
  reader.is_active = false;
  if (reader.waiting) reader.begin(*std::exchange(reader.waiting, std::nullopt));
}

void Replay::step_reader(double horizon) {
  ReplayRequests::Reader& reader = requests_->reader;
  if (reader.has_commands) return read_chains(horizon);
  const auto on_row = [&](std::uint64_t done) { reader.arrival = done; };
  if (!read_rows(requests_->fetch, reader.rows, reader.time, horizon, on_row)) return;
  reader.has_commands = true;
  reader.commands = reader.arrival;
  reader.time = std::max(reader.time, static_cast<double>(reader.arrival));
}

// Until a command has arrived with what it refers to. The first one of a chunk lets the next chunk
// be fetched when it is taken.
void Replay::wait_for_command(const hw::Program& program, std::size_t index) {
  ReplayRequests::Reader& reader = requests_->reader;
  const std::size_t chunk = machine_.core.fetch_commands;
  if (fetched_ == commands_) begin_fetch(program, index, dispatch_);
  const std::uint64_t& arrival = reader.arrivals[commands_ % reader.arrivals.size()];
  while (arrival == ReplayRequests::Reader::kNotKnown) step();
  if (commands_ % chunk == 0 && boundary_ != commands_ + 1) {
    boundary_ = commands_ + 1;
    if (program.commands.size() - index > chunk) {
      begin_fetch(program, index + chunk, std::max(dispatch_, reader.first_out));
    }
  }
  dispatch_ = std::max(dispatch_, arrival);
}

// Issues requests until all are, which is true, or until one has to wait for others to act before
// it: false, and `now` is when. `on_row`: a row is done in that cycle; before it `on_request`: so
// many bytes of it are. Both may bring the horizon nearer.
template <typename OnRow, typename OnRequest>
bool Replay::read_rows(RequestPort& port, ReplayRequests::Rows& rows, double& now,
                       const double& horizon, const OnRow& on_row, const OnRequest& on_request) {
  ReplayRequests& r = *requests_;
  ReplayRows& left = rows.left;
  port.hold_until(std::max(rows.not_before, static_cast<std::uint64_t>(now)));
  while (left.left != 0) {
    const std::uint64_t length = r.cut.length(left.address, left.at, left.bytes);
    std::uint64_t cycle = port.find_slot();
    for (;; cycle = port.find_slot()) {
      const auto issue = static_cast<double>(cycle);
      if (issue > now) {
        now = issue;
        if (issue >= horizon) return false;
      }
      const std::optional<std::uint64_t> placing = port.placing();
      if (!placing) break;
      const hw::SumTraffic::Placed placed = placed_by(*placing, static_cast<std::uint64_t>(now));
      port.settle(placed.cycle, placed.is_final);
    }
    const std::uint64_t done = r.memory.serve(false, left.address + left.at, length, cycle);
    rows.row_done = std::max(rows.row_done, done);
    const std::optional<std::uint64_t> placing = on_request(length, done);
    port.take_slot(cycle, done + rows.settling, placing);
    left.at += length;
    if (left.at < left.bytes) continue;
    left.at = 0;
    left.address += left.pitch;
    --left.left;
    on_row(rows.row_done);
    rows.row_done = 0;
  }
  return true;
}

void Replay::begin_load_requests(Queue& queue) {
  const ReplayWork& work = queue.work(queue.ended);
  ReplayRequests& r = *requests_;
  taken_ = load_done_ = static_cast<double>(queue.started);
  if (work.expands) taken_ = std::max(taken_, expander_free_);
  before_last_ = static_cast<double>(queue.started);
  r.placed_done = 0;
  if (work.is_placed) advance_sums(queue.started);
  r.loaded = {work.rows, 0, 0, settling(work)};
  r.load_operand = 0;
  if (work.is_staged()) r.staged_of(queue.ended).begin_rows(work.element, work.operands == 0);
  queue.phase = Phase::kRows;
}

// As tlm/core/load_stages.cpp has it.
void Replay::step_staged_requests(Queue& queue, double horizon) {
  const ReplayWork& work = queue.work(queue.ended);
  ReplayRequests& r = *requests_;
  hw::StagedLoad& staged = r.staged_of(queue.ended);
  const auto read = [&](const hw::BankAccess& banks, std::uint64_t at) {
    (void)scratchpad_.serve(at, {banks, std::nullopt});
  };
  const auto write = [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t words,
                         std::uint64_t end) {
    if (work.to_accumulator) return;
    for (std::uint64_t cycle = end - words; cycle < end; ++cycle) {
      read(hw::bank_access(at, bytes, bank_size_), cycle);
    }
  };
  const auto on_request = [&](std::uint64_t bytes,
                              std::uint64_t done) -> std::optional<std::uint64_t> {
    const ReplayRows& left = r.loaded.left;
    staged.arrive(left.address + left.at, bytes, done);
    const auto now = static_cast<std::uint64_t>(queue.time);
    staged.go_on(now + hw::loads_known_cycles(machine_), load_set_up_, read, write);
    return std::nullopt;
  };
  const auto on_row = [](std::uint64_t /*arrived*/) {};
  for (;;) {
    if (!read_rows(r.load, r.loaded, queue.time, horizon, on_row, on_request)) return;
    if (r.load_operand == work.operands) break;
    const ReplayRows& next = work.operand[r.load_operand++];
    r.loaded = {next, 0, 0};
    staged.begin_rows(next.bytes / work.columns, r.load_operand == work.operands);
  }
  staged.go_on(hw::StagedLoad::kAllKnown, load_set_up_, read, write);
  end_command(queue, staged.completed(), staged.completed(), staged.completed());
}

void Replay::load_row(ReplayWork& work, std::uint64_t arrived) {
  std::uint64_t there = arrived;
  if (work.expands) {
    before_last_ = taken_;
    taken_ = std::max(taken_, static_cast<double>(arrived)) + static_cast<double>(work.per_row);
    there = static_cast<std::uint64_t>(taken_) + work.fill;
  }
  there += settling(work);
  load_done_ = std::max(load_done_, static_cast<double>(there));
  const std::uint64_t begin = work.local.begin;
  work.local.begin += work.local_pitch;
  const std::uint64_t words = work.as_it_arrives ? work.row_readings : work.row_words;
  const std::uint64_t from = there - std::min(there, words);
  if (!work.to_accumulator) (void)serve_words(begin, begin + work.local_bytes, words, from);
}

void Replay::step_load_requests(Queue& queue, double horizon) {
  ReplayWork& work = queue.work(queue.ended);
  ReplayRequests& r = *requests_;
  if (work.is_staged()) return step_staged_requests(queue, horizon);
  const auto on_row = [&](std::uint64_t arrived) { load_row(work, arrived); };
  using Placing = std::optional<std::uint64_t>;
  const auto on_request = [&](std::uint64_t bytes, std::uint64_t done) -> Placing {
    const std::uint64_t begin = work.local.begin + r.loaded.left.at;
    const ReplayRows& left = r.loaded.left;
    if (work.is_placed && sums_.serves()) {
      // As tlm/core/load_unit.cpp has it.
      const std::uint64_t row = work.local.begin / sizeof(std::int32_t);
      const std::uint64_t last = sums_.add(left.address + left.at, bytes, machine_.bus.width_bytes,
                                           row * work.element + left.at, work.element, done);
      if (done >= r.placed_done) r.placing = last;
      r.placed_done = std::max(r.placed_done, done);
      return last;
    }
    if (!work.as_it_arrives) return std::nullopt;
    hw::serve_request(scratchpad_, bank_size_, left.address + left.at, bytes, begin, load_access_,
                      done);
    return std::nullopt;
  };
  if (!read_rows(r.load, r.loaded, queue.time, horizon, on_row, on_request)) return;
  double free = std::max(queue.time, static_cast<double>(r.load.next_issue()));
  if (work.expands) {
    expander_free_ = taken_;
    free = std::max(free, before_last_);
    const std::uint64_t left = work.fill + settling(work);
    load_done_ = std::max(load_done_, taken_ + static_cast<double>(left));
  }
  auto done = static_cast<std::uint64_t>(std::max(load_done_, free));
  if (work.is_placed && sums_.serves()) {
    const hw::SumTraffic::Placed placed =
        placed_by(r.placing, static_cast<std::uint64_t>(queue.time));
    done = std::max(done, placed.cycle);
    if (!placed.is_final) {
      queue.placing.push_back({queue.ended, work.number, work.op, r.placing, done});
    }
  }
  end_command(queue, done, done, static_cast<std::uint64_t>(free));
}

hw::SumTraffic::Placed Replay::placed_by(hw::SumTraffic::Request request, std::uint64_t now) {
  const hw::SumTraffic::Placed placed = sums_.placed(request);
  if (placed.is_final) return placed;
  advance_sums(now);
  return sums_.placed(request);
}

// What waits for a command that completes later than was known may begin later.
void Replay::put_off_starts() {
  for (Queue& waiting : queues_) waiting.is_due = waiting.is_due && waiting.phase != Phase::kIdle;
}

// Of loads whose sums are there it is final when they complete.
void Replay::place_loads(std::uint64_t now) {
  Queue& queue = queues_[kLoad];
  for (std::size_t i = 0; i < queue.placing.size();) {
    Placing& load = queue.placing[i];
    const hw::SumTraffic::Placed placed = placed_by(load.request, now);
    load.cycle = std::max(load.cycle, placed.cycle);
    std::uint64_t& completed = queue.completed[load.number & (queue.completed.size() - 1)];
    if (completed != load.cycle) put_off_starts();
    completed = load.cycle;
    if (!placed.is_final) {
      ++i;
      continue;
    }
    complete_command(queue, load.command, load.op, load.cycle);
    loads_complete_ = std::max(loads_complete_, load.cycle);
    queue.placing.erase(queue.placing.begin() + static_cast<std::ptrdiff_t>(i));
  }
  queue.looked = now;
}

void Replay::begin_operand_requests(const ReplayWork& work) {
  ReplayRequests& r = *requests_;
  r.arrivals = {work.m, work.columns, machine_.result_lanes(), machine_.bus.width_bytes};
  r.operands_end = 0;
  ask_for_operands(work, static_cast<std::uint64_t>(operands_now_));
}

// A half of the room for them, or all rows.
void Replay::ask_for_operands(const ReplayWork& work, std::uint64_t not_before) {
  ReplayRequests& r = *requests_;
  r.asks_for_operands = true;
  r.operands_end = std::min(work.m, r.operands_end + work.operand_block);
  r.operands.not_before = not_before;
  r.operand = 0;
  next_operand(work);
}

void Replay::next_operand(const ReplayWork& work) {
  ReplayRequests& r = *requests_;
  const std::uint64_t first = (r.operands_end - 1) / work.operand_block * work.operand_block;
  r.operands.left = rows_from(work.operand[r.operand], first, r.operands_end - first);
  r.arrivals.begin_rows(work.operand[r.operand].bytes / work.columns,
                        r.operand + 1 == work.operands);
}

// One operand after the other. Two halves of the room for them are asked for one after the other,
// the ones after these as rows of the store in progress have left.
void Replay::step_operand_requests(double horizon) {
  ReplayRequests& r = *requests_;
  Queue& queue = queues_[kStore];
  const ReplayWork& work = queue.work(operands_begun_ - 1);
  const bool runs = queue.phase != Phase::kIdle && operands_begun_ == queue.ended + 1;
  const auto on_request = [&](std::uint64_t bytes,
                              std::uint64_t arrived) -> std::optional<std::uint64_t> {
    const ReplayRows& left = r.operands.left;
    r.arrivals.arrive(left.address + left.at, bytes, arrived);
    if (!runs || (queue.time < kNever && !r.is_followed)) return std::nullopt;
    queue.time = std::min(queue.time, std::max(r.store_since, operands_now_));
    horizon = std::min(horizon, queue.time);
    return std::nullopt;
  };
  const auto on_row = [](std::uint64_t /*arrived*/) {};
  for (;;) {
    if (!read_rows(r.read, r.operands, operands_now_, horizon, on_row, on_request)) return;
    if (++r.operand < work.operands) {
      next_operand(work);
    } else if (r.operands_end == work.operand_block && r.operands_end < work.m) {
      ask_for_operands(work, r.operands.not_before);
    } else {
      break;
    }
  }
  r.asks_for_operands = false;
  if (runs) more_operands(work);
}

// The half after those that have been asked for, if the store in progress has used the one before.
void Replay::more_operands(const ReplayWork& work) {
  ReplayRequests& r = *requests_;
  if (r.asks_for_operands || r.operands_end == work.m) return;
  const std::uint64_t used = r.operands_end - work.operand_block;
  if (r.rows.left().size() < used) return;
  operands_now_ = std::max(operands_now_, static_cast<double>(r.read.next_issue()));
  ask_for_operands(work, r.rows.left()[used - 1]);
}

// As tlm/core/store_operands.cpp has it.
hw::InputTimes Replay::input_times(const ReplayWork& work, double now) const {
  const hw::SumReads* const sums = sums_.serves() ? &sums_ : nullptr;
  if (work.operands == 0) return {nullptr, 0, 0, sums};
  const std::uint64_t not_before =
      static_cast<std::uint64_t>(now) + hw::loads_known_cycles(machine_);
  static constexpr std::uint64_t kNone = 0;
  hw::InputTimes times{&kNone, 0, not_before, sums};
  if (operands_begun_ == queues_[kStore].ended + 1) requests_->arrivals.tell(times);
  return times;
}

void Replay::advance_sums(std::uint64_t now) {
  if (!sums_.serves()) return;
  if (now > sums_known_) (void)advance_reads(now);
  sums_known_ = std::max(sums_known_, now);
  sums_.know(reads_, scratchpad_, sums_known_);
}

void Replay::await_sums(double& now) {
  const std::uint64_t reached = requests_->rows.reached();
  sums_.keep_from(reached);
  now = std::max(now, static_cast<double>(hw::SumTraffic::known_at(reached, sums_known_)));
}

// The unit goes on when it is known when operands arrive, or when vectors in the stages may leave
// before those to come matter; or who uses the accumulator.
void Replay::await_inputs(double& now) {
  ReplayRequests& r = *requests_;
  if (r.rows.waits_for_sums()) return await_sums(now);
  r.store_since = now;
  now = r.rows.is_empty()
            ? kNever
            : static_cast<double>(r.rows.reached() - hw::loads_known_cycles(machine_));
}

}  // namespace systole::mapper

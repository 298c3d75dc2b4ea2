#include <algorithm>
#include <cmath>

#include "base/round.h"
#include "hw/array/accumulator.h"
#include "mapper/replay/replay.h"

/// The units of a replay: what a command does from its start to its end.
namespace systole::mapper {
namespace {

/// Requests that come into the scratchpad one directly after the other, if they have the bus to
/// themselves: a share of their chunk, within limits. Of a long chunk more gaps say no more about
/// the banks, and each costs time.
constexpr std::uint64_t kPartsOfChunk = 4, kLeastOfPart = 8, kMostOfPart = 32;

std::uint64_t whole(double cycles) { return static_cast<std::uint64_t>(rounded_up(cycles)); }

/// Where a port that was at `now` has waited for time to catch up, if its last request issues in
/// cycle `issue`: in steps of a chunk.
double caught_up(double now, double issue, double chunk) {
  return issue > now + chunk ? now + std::floor((issue - now) / (chunk + 1)) * (chunk + 1) : now;
}

}  // namespace

void Replay::begin_load(Queue& queue) {
  ReplayWork& work = queue.work(queue.ended);
  const auto started = static_cast<double>(queue.started);
  taken_ = load_done_ = started;
  if (work.expands) taken_ = before_last_ = std::max(started, expander_free_);
  for (unsigned i = 0; i < work.operands; ++i) {
    while (work.operand[i].left != 0) {
      taken_ = memory_.move(false, load_port_, work.operand[i], started, 0, load_port_.window())
                   .last_done;
    }
  }
  stages_begun_ = false;
  queue.phase = Phase::kRows;
  queue.time = std::max(started, load_port_.next_issue());
}

// The bytes that `chunk` has brought, evenly; from byte `at` of a row on.
void Replay::arrive(ReplayWork& work, std::uint64_t at, const ReplayMemory::Chunk& chunk) {
  // Rows that are written as a whole have arrived when their last byte is.
  const double each = (chunk.last_done - chunk.first_done) /
                      static_cast<double>(std::max<std::uint64_t>(chunk.rows, 1));
  double there = chunk.rows == 1 ? chunk.last_done : chunk.first_done + each;
  const std::uint64_t begin = work.local.begin;
  if (work.as_it_arrives) {
    arrive_in_parts(work, at, chunk);
  } else if (!work.to_accumulator) {
    for (std::uint64_t row = 0; row < chunk.rows; ++row, there += each) {
      const std::uint64_t first = begin + row * work.local_pitch;
      const auto end = static_cast<std::uint64_t>(there);
      (void)serve_words(first, first + work.local_bytes, work.row_words,
                        end - std::min(end, work.row_words));
    }
  }
  work.local.begin += chunk.rows * work.local_pitch;
}

void Replay::arrive_in_parts(const ReplayWork& work, std::uint64_t at,
                             const ReplayMemory::Chunk& chunk) {
  if (chunk.bytes == 0) return;
  const auto address = [&](std::uint64_t byte) {
    return work.local.begin + (at + byte) / work.local_bytes * work.local_pitch +
           (at + byte) % work.local_bytes;
  };
  const std::uint64_t gathered =
      ceil_div(chunk.beats * machine_.bus.width_bytes, load_access_.bytes());
  const std::uint64_t words = std::max(chunk.requests, gathered) + chunk.rows * work.row_readings;
  const double duration = chunk.last_done - chunk.first_done;
  // Of a busy bus, requests that follow each other are nearly one.
  const double share = static_cast<double>(words) / std::max(duration, 1.0);
  const auto most = std::clamp(chunk.requests / kPartsOfChunk, kLeastOfPart, kMostOfPart);
  const auto at_once = static_cast<std::uint64_t>(static_cast<double>(most) * std::min(share, 1.0));
  const std::uint64_t parts = ceil_div(chunk.requests, std::max<std::uint64_t>(at_once, 1));
  const double each = parts == 1 ? 0 : duration / static_cast<double>(parts - 1);
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t first = chunk.bytes * part / parts;
    const std::uint64_t last = std::max(first, chunk.bytes * (part + 1) / parts - 1);
    const std::uint64_t some = words * (part + 1) / parts - words * part / parts;
    const auto there =
        static_cast<std::uint64_t>(chunk.first_done + each * static_cast<double>(part));
    (void)serve_words(address(first), address(last) + 1, some, there - std::min(there, some));
  }
}

void Replay::step_load(Queue& queue, double horizon) {
  ReplayWork& work = queue.work(queue.ended);
  const std::uint64_t window = load_port_.window();
  do {
    const double now = std::max(queue.time, load_port_.next_issue());
    const double bound = std::max(now + kChunk, horizon);
    const double last =
        std::max(now + static_cast<double>(window - 1), load_port_.slot_free(window - 1));
    std::uint64_t limit = window;
    if (last > bound) {
      limit = 1 + static_cast<std::uint64_t>(static_cast<double>(window - 1) * (bound - now) /
                                             (last - now));
    } else {
      const double more = (bound - last) / memory_.pace(load_port_.window());
      limit += static_cast<std::uint64_t>(std::min(more, kMostAlone));
    }
    const std::uint64_t at = work.rows.at;
    const ReplayMemory::Chunk chunk =
        memory_.move(false, load_port_, work.rows, static_cast<double>(queue.started), 0, limit);
    load_done_ = std::max(load_done_, chunk.last_done);
    if (work.is_staged() && !std::exchange(stages_begun_, true)) {
      // With the first rows: what the chain needs comes before them.
      work.set_up.dispatched = work.set_up.started = work.set_up.readable = whole(chunk.first_done);
      taken_ = std::max(taken_,
                        static_cast<double>(load_set_up_.begin(
                            work.set_up, work.set_up.started + work.set_up.parameter_words + 1)));
    }
    if (work.has_chain) {
      const auto rows = static_cast<double>(chunk.rows);
      const auto each = static_cast<double>(work.per_row);
      taken_ = std::max({taken_ + rows * each, chunk.first_done + rows * each,
                         chunk.rows == 0 ? 0 : chunk.last_done + each});
      if (work.expands && chunk.rows != 0) {
        // Groups follow each other at the pace of the expander, or as they arrive.
        const bool waits = taken_ - each <= chunk.last_done;
        const double apart = (chunk.last_done - chunk.first_done) / rows;
        before_last_ = waits && (chunk.rows > 1 || work.rows.left != 0)
                           ? std::min(chunk.last_done, chunk.last_done - apart + each)
                           : taken_ - each;
      }
    }
    arrive(work, at, chunk);
    queue.time = std::max(load_port_.next_issue(), rounded_up(load_port_.slot_free(0)));
  } while (work.rows.left != 0 && queue.time < horizon);
  if (work.rows.left != 0) return;
  double free = std::max(load_port_.next_issue(), static_cast<double>(queue.started));
  if (work.has_chain) {
    if (work.expands) expander_free_ = taken_;
    load_done_ = std::max(load_done_, taken_ + static_cast<double>(work.fill));
    free = std::max(free, work.expands ? before_last_ : load_done_);
  }
  const std::uint64_t done = whole(load_done_) + settling(work);
  end_command(queue, done, done, whole(free));
}

void Replay::begin_matmul(Queue& queue) {
  ReplayWork& work = queue.work(queue.ended);
  queue.phase = Phase::kRows;
  if (work.opcode == hw::Opcode::kAttention) {
    queue.time = static_cast<double>(queue.started + work.duration);
    return;
  }
  const std::uint64_t started = queue.started;
  // As tlm/core/array_unit.cpp has it.
  reads_.begin(work.product, started, ready_of(work));
  queue.time = static_cast<double>(std::max(advance_reads(started), started + 1));
}

std::uint64_t Replay::advance_reads(std::uint64_t now) {
  using Next = hw::OperandStream::Next;
  return reads_.advance(scratchpad_, now, [this, now](std::size_t ahead) -> std::optional<Next> {
    const Queue& queue = queues_[kCompute];
    if (queue.ended + ahead >= queue.dispatched) return std::nullopt;
    const ReplayWork& next = queue.work(queue.ended + ahead);
    if (next.opcode != hw::Opcode::kMatmul || !knows_ready(next)) return std::nullopt;
    const std::uint64_t ready = ready_of(next);
    if (ready > now) return std::nullopt;
    return Next{&next.product, ready};
  });
}

void Replay::end_matmul(Queue& queue) {
  ReplayWork& work = queue.work(queue.ended);
  const auto now = static_cast<std::uint64_t>(queue.time);
  if (work.opcode != hw::Opcode::kMatmul) {
    while (!queue.leaving.empty()) leave_array();
    end_command(queue, now, now, now);
    return;
  }
  if (const std::uint64_t end = advance_reads(now); end > now) {
    queue.time = static_cast<double>(end);
    return;
  }
  forget_before(queue.started - std::min(queue.started, hw::kKeptBankCycles));
  Leaving& last = queue.leaving.emplace_back();
  last.ended = reads_.end(now);
  last.left = reads_.leaves(last.ended, now);
  last.after = hw::kMatmulRegisterCycles + hw::kAccumulatorWriteCycles + work.read_delay;
  end_command(queue, now + hw::kMatmulReleaseCycles, last.left + last.after, now);
}

void Replay::leave_array() {
  Queue& queue = queues_[kCompute];
  const std::uint64_t now = queue.leaving.front().left;
  (void)advance_reads(now);
  std::uint64_t number = queue.ended - queue.leaving.size();
  if (reads_.leaves(queue.leaving.front().ended, now) == now) {
    queue.leaving.erase(queue.leaving.begin());
    complete_command(queue, number);
    return;
  }
  for (Leaving& each : queue.leaving) {
    each.left = reads_.leaves(each.ended, now);
    queue.completed[number++ & (queue.completed.size() - 1)] = each.left + each.after;
  }
  put_off_starts();
}

// As LocalMemory::forget_before() of tlm/core/. By the chunk what was read ahead long ago does not
// count.
void Replay::forget_before(std::uint64_t cycle) {
  const Queue& queue = queues_[kStore];
  const std::uint64_t number = queue.ended + (queue.phase == Phase::kIdle ? 0 : 1);
  if (requests_ && number < queue.dispatched && knows_readable(queue.work(number))) {
    const ReplayWork& next = queue.work(number);
    hw::StoreSetUp::Command command = next.set_up;
    command.dispatched = next.dispatched;
    command.readable = readable_at(next);
    set_up_.read_ahead(command, cycle, parameter_reads(next));
  }
  const std::uint64_t asked = cycle - std::min<std::uint64_t>(cycle, 1);
  reads_.prune_before(asked);
  scratchpad_.prune_before(std::min(asked, reads_.oldest_sums()));
}

void Replay::begin_store(Queue& queue) {
  ReplayWork& work = queue.work(queue.ended);
  const auto started = static_cast<double>(queue.started);
  const ReplayWork::LocalBytes& parameters = work.parameters;
  work.set_up.dispatched = work.dispatched;
  work.set_up.started = queue.started;
  work.set_up.readable = readable_at(work);
  (void)advance_reads(queue.started);
  const std::uint64_t late = set_up_.late_words(work.set_up, parameter_reads(work));
  written_ = store_now_ = started;
  row_ = 0;
  columns_.left = 0;
  queue.phase = Phase::kRows;
  if (requests_) return begin_store_requests(queue, late);
  // As tlm/core/store_unit.cpp has it.
  const std::uint64_t asked = serve_words(parameters.begin, parameters.end, late, queue.started);
  set_up_store(queue, asked + 1);
  queue.time = store_now_;
}

void Replay::set_up_store(const Queue& queue, std::uint64_t parameters_read) {
  const ReplayWork& work = queue.work(queue.ended);
  const std::uint64_t set_up = set_up_.begin(work.set_up, parameters_read) - queue.started;
  // Serial units work meanwhile.
  const std::uint64_t lead = work.result.lead;
  row_done_ = static_cast<double>(queue.started + work.result.fill + std::max(set_up, lead) - lead);
  if (requests_) requests_->flow_of(queue.ended).start(queue.started, set_up);
}

void Replay::begin_operands(double cycle) {
  const std::uint64_t number = next_for_operands();
  ReplayWork& work = queues_[kStore].work(number);
  operands_begun_ = number + 1;
  operands_now_ = cycle;
  if (requests_) return begin_operand_requests(work);
  for (unsigned half = 0; half < 2; ++half) fetch_operands(work, cycle, half);
}

void Replay::fetch_operands(ReplayWork& work, double not_before, unsigned half) {
  Arrival at;
  for (unsigned i = 0; i < work.operands; ++i) {
    ReplayRows& operand = work.operand[i];
    ReplayRows part = operand;
    part.left = std::min(part.left, work.operand_block);
    operand.left -= part.left;
    bool first = true;
    while (part.left != 0) {
      const ReplayMemory::Chunk chunk = memory_.move(
          false, read_port_, part, std::max(not_before, operands_now_), 0, read_port_.window());
      if (first) at.first = std::max(at.first, chunk.first_done);
      first = false;
      at.last = std::max(at.last, chunk.last_done);
      operands_now_ = caught_up(operands_now_, chunk.last_issue, kChunk);
    }
    operand.address = part.address;
  }
  if (at.last != 0) operands_at_[half] = at;
}

double Replay::operands_there(const ReplayWork& work, std::uint64_t row) const {
  const std::uint64_t block = work.operand_block;
  const Arrival& at = operands_at_[row / block % 2];
  const std::uint64_t rows = std::min(block, work.m - row / block * block);
  return rounded_up(at.first + (at.last - at.first) * static_cast<double>(row % block + 1) /
                                   static_cast<double>(rows)) +
         static_cast<double>(work.result.after_operands);
}

void Replay::step_store(Queue& queue, double horizon) {
  ReplayWork& work = queue.work(queue.ended);
  if (queue.phase == Phase::kDrain) {
    end_store(queue);
    return;
  }
  if (requests_) return step_store_requests(queue, horizon);
  if (work.opcode == hw::Opcode::kMove && work.operands == 0) {
    const double begin = row_done_;
    row_done_ += static_cast<double>(work.m * work.per_row);
    row_ = work.m;
    const std::uint64_t rows = work.transposed ? work.columns : work.m;
    const auto from = static_cast<std::uint64_t>(
        work.transposed ? std::max(0.0, begin - static_cast<double>(work.columns)) : begin);
    const std::uint64_t parts =
        work.transposed ? (work.m + machine_.result_lanes() - 1) / machine_.result_lanes() : 1;
    const std::uint64_t end =
        serve_words(work.local.begin, work.local.end, rows * std::max(work.row_words, parts), from);
    written_ = std::max(written_, static_cast<double>(end));
  } else if (work.transposed) {
    store_columns(queue, work);
  } else {
    store_rows(queue, work);
  }
  if (row_ < work.m) return;
  release_sums(work);
  queue.phase = Phase::kDrain;
  queue.time = std::max(row_done_, store_now_);
  if (work.opcode == hw::Opcode::kStore) {
    queue.time = std::max(queue.time, write_port_.next_issue());
  }
}

void Replay::store_rows(Queue& queue, ReplayWork& work) {
  const bool moves = work.opcode == hw::Opcode::kMove;
  const auto each = static_cast<double>(work.per_row);
  std::uint64_t rows = work.m - row_;
  const auto arrival = [&](std::uint64_t row) {
    return work.operands == 0 ? 0.0 : operands_there(work, row);
  };
  if (work.operands != 0) rows = std::min(rows, work.operand_block - row_ % work.operand_block);
  double first = row_done_ + each;
  first = std::max(first, arrival(row_));
  if (moves) {
    row_done_ = std::max(first + static_cast<double>(rows - 1) * each, arrival(row_ + rows - 1));
    const double apart = rows == 1 ? 0 : (row_done_ - first) / static_cast<double>(rows - 1);
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t at = work.local.begin + (row_ + row) * work.local_pitch;
      const auto ready = static_cast<std::uint64_t>(first + apart * static_cast<double>(row));
      serve_row(work, at, ready);
    }
    store_now_ = std::max(store_now_, first);
  } else {
    const double begin = std::max(first, write_port_.slot_free(0));
    if (begin > store_now_ + kChunk) {
      store_now_ = queue.time = begin;
      return;
    }
    const std::uint64_t requests = memory_.requests_of(work.rows.address, work.rows.bytes);
    // Each leaves when its own bytes are there: those before the last one earlier.
    const std::uint64_t last = std::min(work.rows.bytes, std::uint64_t{machine_.dma.request_bytes});
    const auto earlier = static_cast<double>((work.rows.bytes - last) / piece_bytes_);
    const double room = std::max(0.0, store_now_ + kChunk - first);
    rows = std::min({rows, 1 + static_cast<std::uint64_t>(room / each),
                     std::max<std::uint64_t>(1, write_port_.window() / requests)});
    ReplayRows part = work.rows;
    part.left = rows;
    double issue = first, apart = 0;
    while (part.left != 0) {
      const double ready = first - earlier + static_cast<double>(rows - part.left) * each;
      const ReplayMemory::Chunk chunk =
          memory_.move(true, write_port_, part, ready, each, write_port_.window());
      written_ = std::max(written_, chunk.last_done);
      issue = chunk.last_issue;
      if (chunk.requests > 1) {
        apart = (issue - chunk.first_issue) / static_cast<double>(chunk.requests - 1);
      }
    }
    work.rows.address = part.address;
    // Two requests have room in the queue.
    const auto beats = static_cast<double>(ceil_div(last, std::uint64_t{machine_.bus.width_bytes}));
    row_done_ = std::max({first + static_cast<double>(rows - 1) * each, arrival(row_ + rows - 1),
                          issue - std::max(0.0, 2 * apart - beats - 2)});
    store_now_ = caught_up(store_now_, issue, kChunk);
  }
  row_ += rows;
  use_operands(work);
  queue.time = store_now_;
}

void Replay::store_columns(Queue& queue, ReplayWork& work) {
  const std::uint64_t lanes = machine_.result_lanes();
  const std::uint64_t rows = std::min(lanes, work.m - row_);
  const bool moves = work.opcode == hw::Opcode::kMove;
  const double last = static_cast<double>(rows * work.per_row);
  if (columns_.left == 0) {
    row_done_ += last;
    if (work.operands != 0) row_done_ = std::max(row_done_, operands_there(work, row_ + rows - 1));
    columns_ = {work.rows.address + row_ * work.element, work.rows.pitch, rows * work.element, 0,
                work.columns};
  }
  if (moves) {
    columns_.left = 0;
    store_now_ = std::max(store_now_, row_done_);
  } else {
    const double done = static_cast<double>(work.columns - columns_.left);
    const double ready = row_done_ - static_cast<double>(work.columns) + 1 + done;
    const double begin = std::max({ready, write_port_.next_issue(), write_port_.slot_free(0)});
    if (begin > store_now_ + kChunk) {
      store_now_ = queue.time = begin;
      return;
    }
    const ReplayMemory::Chunk chunk =
        memory_.move(true, write_port_, columns_, ready, 1, write_port_.window());
    written_ = std::max(written_, chunk.last_done);
    store_now_ = caught_up(store_now_, chunk.last_issue, kChunk);
  }
  queue.time = store_now_;
  if (columns_.left != 0) return;
  row_ += rows;
  use_operands(work);
}

// A half of the room for operands is free for those after the other half.
void Replay::use_operands(ReplayWork& work) {
  if (work.operands == 0 || row_ % work.operand_block != 0) return;
  operands_now_ = std::max(operands_now_, row_done_);
  fetch_operands(work, row_done_, (row_ / work.operand_block - 1) % 2);
}

// As tlm/core/store_unit.cpp: the rows that are left are in the stages, or are read, while this one
// leaves them.
void Replay::release_sums(const ReplayWork& work) {
  Queue& queue = queues_[kStore];
  if (queue.read > queue.ended) return;
  const std::uint64_t left = work.m - row_;
  const std::optional<std::uint64_t> read = hw::sums_read(work.result, whole(row_done_), left, 0);
  if (read) release_command(queue, std::max(*read, static_cast<std::uint64_t>(queue.time)));
}

void Replay::end_store(Queue& queue) {
  ReplayWork& work = queue.work(queue.ended);
  const std::uint64_t end = whole(queue.time);
  const std::uint64_t left = whole(row_done_), free = std::max(end, left + work.result.side);
  set_up_.end(left);
  end_command(queue, end, std::max(free, whole(written_)), free);
}

}  // namespace systole::mapper

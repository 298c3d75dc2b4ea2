#include <algorithm>
#include <utility>

#include "hw/core/bank_words.h"
#include "mapper/replay/replay.h"

/// Results of the store unit in a replay by request, as tlm/core/store_rows.cpp has them.
namespace systole::mapper {

void Replay::begin_store_requests(Queue& queue, std::uint64_t late_words) {
  ReplayRequests& r = *requests_;
  r.learnt = 0;
  r.written = {};
  r.rows = {};
  r.is_moving = r.is_set_up = false;
  r.words = r.columns_left = r.block_begin = 0;
  r.late_words = late_words;
  r.next_word = queue.started;
  sums_.keep_from(queue.started);
  advance_sums(queue.started);
  queue.time = static_cast<double>(queue.started);
}

// Those of its parameters that have not been read ahead, then it is known when the first sums are.
bool Replay::read_parameters(Queue& queue, double horizon) {
  ReplayRequests& r = *requests_;
  const ReplayWork& work = queue.work(queue.ended);
  while (r.late_words != 0) {
    const hw::ParameterWords& parameters = work.parameter_words;
    const std::uint64_t word = parameters.count() - r.late_words;
    const std::uint64_t at = parameters.address(word), run = parameters.run(word);
    const std::uint64_t bytes =
        std::min(run * parameters.bytes(), bank_size_.bytes() * machine_.scratchpad.banks - at);
    if (!serve_known(at, bytes, run, r.next_word, queue.time, horizon)) return false;
    r.late_words -= run;
  }
  set_up_store(queue, r.next_word + 1);
  const bool moves = work.opcode == hw::Opcode::kMove;
  const hw::RowWrite to =
      moves ? hw::RowWrite{work.local.begin, work.local_pitch, work.m, work.local_bytes}
            : hw::RowWrite{work.rows.address, work.rows.pitch, work.m, work.rows.bytes};
  r.rows = hw::ResultRows(
      std::move(r.flow_of(queue.ended)),
      {work.columns, machine_.result_lanes(), work.bits, hw::result_piece_bytes(machine_, moves)},
      to);
  r.is_set_up = true;
  return true;
}

// What has left the chain, and the sums that are read, make room for others. True: they may begin
// before the store goes on.
bool Replay::learn(const ReplayWork& work) {
  ReplayRequests& r = *requests_;
  Queue& queue = queues_[kStore];
  const std::vector<std::uint64_t>& left = r.rows.left();
  const bool asked = r.asks_for_operands, was_read = queue.read > queue.ended;
  bool has_used = false;  // its operands
  if (r.learnt != left.size()) {
    r.learnt = left.size();
    row_done_ = static_cast<double>(left.back());
    has_used = work.operands != 0 && r.learnt == work.m;
    if (has_used) r.operands_free = left.back();
    if (work.operands != 0) more_operands(work);
  }
  const std::optional<std::uint64_t> read = r.rows.sums_read();
  if (read && !was_read) {
    release_command(queue, std::max(*read, static_cast<std::uint64_t>(queue.time)));
  }
  return (read && !was_read) || has_used || asked != r.asks_for_operands;
}

bool Replay::write_row(const ReplayWork& work, double& now, double horizon) {
  ReplayRequests& r = *requests_;
  ReplayRows& row = r.written;
  r.write.hold_until(static_cast<std::uint64_t>(now));
  while (row.left != 0) {
    const std::uint64_t address = row.address + row.at;
    const std::uint64_t length = r.cut.length(row.address, row.at, row.bytes);
    const std::optional<std::uint64_t> ready =
        r.rows.request(length, r.queue, input_times(work, now));
    if (learn(work)) return false;
    if (!ready) {
      await_inputs(now);
      return false;
    }
    r.write.hold_until(*ready);
    const std::uint64_t cycle = r.write.find_slot();
    if (static_cast<double>(cycle) > now) {
      const auto issue = static_cast<double>(cycle);
      // Sums are read while it waits for its slot.
      if (sums_.serves()) r.rows.go_on(r.queue, input_times(work, now));
      if (learn(work)) return false;
      if (r.rows.waits_for_sums()) await_sums(now);
      const bool is_first = !r.rows.waits_for_sums() || issue <= now;
      if (is_first) {
        r.is_followed = sums_.serves() && work.operands != 0 && !r.rows.sums_read();
        r.store_since = now;
        now = issue;
      }
      if (now >= horizon || !is_first) return false;
    }
    const std::uint64_t done = r.memory.serve(true, address, length, cycle);
    r.write.take_slot(cycle, done);
    r.rows.issued(cycle, address, length, r.queue);
    written_ = std::max(written_, static_cast<double>(done));
    row.at += length;
    if (row.at == row.bytes) row.left = 0;
  }
  return true;
}

// As StoreUnit::serve_words() of tlm/core/: words of the scratchpad, one a cycle from `from` on.
// Returns whether all of them are served before the horizon.
bool Replay::serve_known(std::uint64_t at, std::uint64_t bytes, std::uint64_t words,
                         std::uint64_t from, double& now, double horizon) {
  ReplayRequests& r = *requests_;
  const auto known = [&] {
    return static_cast<std::uint64_t>(now) + hw::loads_known_cycles(machine_);
  };
  const auto waits_until = [&](std::uint64_t cycle) {
    now = static_cast<double>(cycle);
    return now >= horizon;
  };
  if (r.words == 0) {
    r.next_word = from;
    if (from > known() && waits_until(from)) return false;
  }
  for (; r.words < words; ++r.words) {
    const std::uint64_t word = at + r.words * bytes / words;
    const hw::BankAccess access =
        hw::bank_access(word, at + (r.words + 1) * bytes / words - word, bank_size_);
    std::uint64_t free = 0;
    while ((free = hw::first_free(scratchpad_, access, r.next_word)) > known()) {
      if (waits_until(free)) return false;
    }
    r.next_word = scratchpad_.serve(free, {access, std::nullopt}).end;
  }
  r.words = 0;
  return true;
}

bool Replay::move_row(const ReplayWork& work, double& now, double horizon) {
  ReplayRequests& r = *requests_;
  for (bool is_over = false; !is_over;) {
    const std::optional<std::uint64_t> leaves = r.rows.next(input_times(work, now));
    if (learn(work)) return false;
    if (!leaves) {
      await_inputs(now);
      return false;
    }
    const std::uint64_t at = r.rows.piece_address(), bytes = r.rows.piece_bytes();
    const std::uint64_t words = hw::accesses_to_write(hw::scratchpad_code(machine_), at, at + bytes,
                                                      hw::scratchpad_word_bytes(machine_));
    if (!serve_known(at, bytes, words, *leaves - std::min(*leaves, words), now, horizon)) {
      return false;
    }
    written_ = std::max(written_, static_cast<double>(r.next_word + hw::kBankWriteCycles));
    is_over = r.rows.take(r.next_word);
  }
  return true;
}

// The rows of a block go to the transposer, which takes the last one when the columns before have
// left it.
bool Replay::leave_block(const ReplayWork& work, double& now) {
  ReplayRequests& r = *requests_;
  const std::uint64_t end =
      std::min<std::uint64_t>(work.m, r.block_begin + machine_.result_lanes());
  const std::uint64_t columns_left = r.rows.free();
  while (row_ < end) {
    const std::optional<std::uint64_t> left =
        r.rows.leave(input_times(work, now), row_ + 1 == end ? columns_left : 0);
    if (left) {
      ++row_;
      r.block_end = *left;
    }
    if (row_ == end) r.columns_left = work.columns;
    if (learn(work)) return false;
    if (!left) {
      await_inputs(now);
      return false;
    }
  }
  return true;
}

// The next column of the block leaves the transposer.
void Replay::make_column(const ReplayWork& work) {
  ReplayRequests& r = *requests_;
  const bool moves = work.opcode == hw::Opcode::kMove;
  const std::uint64_t column = work.columns - r.columns_left;
  const std::uint64_t bytes = (row_ - r.block_begin) * work.element;
  const std::uint64_t base = moves ? work.local.begin : work.rows.address;
  const std::uint64_t pitch = moves ? work.local_pitch : work.rows.pitch;
  const std::uint64_t address = base + column * pitch + r.block_begin * work.element;
  r.rows.begin_made(address, bytes, r.block_end);
  begin_row(moves, address, bytes);
  if (--r.columns_left == 0) r.block_begin = row_;
}

void Replay::begin_row(bool moves, std::uint64_t address, std::uint64_t bytes) {
  requests_->is_moving = moves;
  if (!moves) requests_->written = {address, 0, bytes, 0, 1};
}

void Replay::step_store_requests(Queue& queue, double horizon) {
  const ReplayWork& work = queue.work(queue.ended);
  ReplayRequests& r = *requests_;
  const bool moves = work.opcode == hw::Opcode::kMove;
  double& now = queue.time;
  r.is_followed = false;
  advance_sums(r.rows.waits_for_sums() ? static_cast<std::uint64_t>(now) : sums_known_);
  for (;;) {
    if (!r.is_set_up) {
      if (!read_parameters(queue, horizon)) return;
    } else if (r.is_moving) {
      if (!move_row(work, now, horizon)) return;
      r.is_moving = false;
    } else if (r.written.left != 0) {
      if (!write_row(work, now, horizon)) return;
    } else if (r.columns_left != 0) {
      make_column(work);
    } else if (row_ == work.m) {
      break;
    } else if (work.transposed) {
      if (!leave_block(work, now)) return;
    } else {
      begin_row(moves, work.rows.address + row_ * work.rows.pitch, work.rows.bytes);
      ++row_;
    }
  }
  (void)learn(work);
  sums_.keep_from(hw::SumTraffic::kNever);
  if (work.transposed) row_done_ = static_cast<double>(r.rows.free());
  queue.phase = Phase::kDrain;
  now = std::max({now, row_done_, static_cast<double>(r.write.next_issue())});
}

}  // namespace systole::mapper

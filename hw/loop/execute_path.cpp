#include "hw/loop/execute_path.h"

#include <algorithm>

namespace systole::hw::loop {

void ExecutePath::land(AccumulatorWrites& writes) {
  done_.reset();
  if (!results_.empty() && results_.front().cycle == cycle_) {
    const Result& result = results_.front();
    const Tag& tag = result.tag;
    if (!tag.garbage && result.row < tag.rows) {
      const std::uint32_t row = (tag.row & ~kAccumulatorRow) + result.row;
      writes.at(row / shape_.accumulator_bank_rows) = {true, tag.accumulate, row};
      ++counts_.sums;
      if (tag.accumulate) ++counts_.accumulated;
    }
    if (result.last) {
      done_ = tag.slot;
      --in_array_;
    }
    results_.pop_front();
  }
  if (done_) return;
  for (std::optional<std::uint16_t>& ended : ended_) {
    if (!ended) continue;
    done_ = ended;
    ended.reset();
    return;
  }
}

/// A row that is complete at the edge enters the array, and the next one comes to the edge.
void ExecutePath::enter_array() {
  const bool enters = streaming_ && a_here_ && weights_here_ && zeros_here_;
  const bool last = enters && entered_ + 1 == stream_rows_;
  const bool takes_command = (!streaming_ || last) && in_array_ < kCommandsInArray;
  if (enters) {
    results_.push_back({cycle_ + shape_.latency(), current_, entered_, last});
    entered_ = last ? 0 : entered_ + 1;
    ++counts_.rows;
  }
  popped_control_ = false;
  controls_full_ = controls_.size() == control_entries();
  bool a = false, weights = false, zeros = false, begins = false;
  Control control;
  if (!controls_.empty()) {
    control = controls_.front();
    const bool a_room = !a_here_ || enters || takes_command;
    const bool weights_room = !weights_here_ || enters || takes_command;
    const bool zeros_room = !zeros_here_ || enters || takes_command;
    a = control.a && (!control.reads_a || control.ready <= cycle_) && a_room;
    weights =
        control.weights && (!control.reads_weights || control.ready <= cycle_) && weights_room;
    zeros = control.zeros && zeros_room;
    popped_control_ = (!control.a || a || !a_room) &&
                      (!control.weights || weights || !weights_room) &&
                      (!control.zeros || zeros || !zeros_room) && (!control.first || takes_command);
    begins = popped_control_ && takes_command && (control.a || control.weights || control.zeros);
  }
  if (enters) a_here_ = weights_here_ = zeros_here_ = false;
  a_here_ |= a;
  weights_here_ |= weights;
  zeros_here_ |= zeros;
  if (last) streaming_ = false;
  if (begins) {
    // Results of the rows that enter now go where the preload before said.
    streaming_ = true;
    stream_rows_ = control.rows;
    current_ = next_;
    next_ = control.tag;
    ++in_array_;
  }
  if (popped_control_) controls_.pop();
}

bool ExecutePath::computing() const {
  return (in_array_ != 0 && (current_.slot || next_.slot)) ||
         std::any_of(results_.begin(), results_.end(),
                     [](const Result& result) { return result.tag.slot.has_value(); });
}

ExecutePath::Work ExecutePath::choose() {
  if (queue_.empty()) return Work::kNone;
  const auto kind = [this](std::size_t i) {
    return i < queue_.size() ? queue_.at(i).kind : Kind::kLoopField;
  };
  switch (kind(0)) {
    case Kind::kConfigureArray:
      if (!computing() && !ended_[0] && !ended_[1] && !done_) {
        done_ = queue_.at(0).slot;
        pops_ = 1;
      }
      return Work::kNone;
    case Kind::kPreload:
      return queue_.size() > 1 ? Work::kPreload : Work::kNone;
    case Kind::kCompute:
      // The command after the preload is needed to see that nothing of it is still in the array.
      return kind(1) == Kind::kPreload && queue_.size() > 2 ? Work::kBoth : Work::kCompute;
    default:
      return Work::kNone;
  }
}

void ExecutePath::read_row(Work work, std::uint32_t scratchpad_banks, bool accepts) {
  const Command* const compute = work == Work::kPreload ? nullptr : &queue_.at(0);
  const Command* const preload = work == Work::kPreload ? &queue_.at(0)
                                 : work == Work::kBoth  ? &queue_.at(1)
                                                        : nullptr;
  const bool loads_weights = preload != nullptr && !preload->garbage;
  std::uint32_t rows = shape_.side;
  if (!loads_weights) {
    rows = std::max(compute == nullptr ? 1 : compute->rows, kFewestRows);
  }
  const auto bank = [this](std::uint32_t row) { return row / shape_.scratchpad_bank_rows; };
  // Weights come in from the last row on.
  const std::uint32_t weight_row = shape_.side - 1 - std::min(weights_, shape_.side - 1);
  const std::uint32_t a_bank = compute == nullptr ? 0 : bank(compute->row + a_);
  const std::uint32_t weight_bank = loads_weights ? bank(preload->row + weight_row) : 0;
  const bool one_bank = compute != nullptr && loads_weights && a_bank == weight_bank;
  const auto ahead = [rows](bool begun, std::uint32_t one, std::uint32_t other) {
    return begun && one == (other + 1) % rows;
  };
  bool a = !ahead(a_begun_, a_, zeros_) && !ahead(a_begun_, a_, weights_);
  const bool zeros = !ahead(zeros_begun_, zeros_, a_) && !ahead(zeros_begun_, zeros_, weights_);
  bool weights = !ahead(weights_begun_, weights_, a_) && !ahead(weights_begun_, weights_, zeros_) &&
                 !(one_bank && a_begun_ == weights_begun_ && a_ == weights_);
  bool reads_a = a && compute != nullptr && a_ < compute->rows;
  bool reads_weights = weights && loads_weights && weight_row < preload->rows;
  if (reads_a && (scratchpad_banks >> a_bank & 1U) != 0) a = reads_a = false;
  if (reads_weights && (scratchpad_banks >> weight_bank & 1U) != 0) weights = reads_weights = false;
  if (!a || !weights) ++counts_.conflicts;
  const auto through = [rows](std::uint32_t row, bool fires) {
    return row == 0 || (row == rows - 1 && fires);
  };
  const bool ends = through(a_, a) && through(zeros_, zeros) && through(weights_, weights) &&
                    (a_begun_ || zeros_begun_ || weights_begun_) && accepts;
  if (accepts) {
    counts_.operand_rows += (reads_a ? 1 : 0) + (reads_weights ? 1 : 0);
    Control control;
    control.a = a;
    control.weights = weights;
    control.zeros = zeros;
    control.first = !a_begun_ && !zeros_begun_ && !weights_begun_;
    control.reads_a = reads_a;
    control.reads_weights = reads_weights;
    control.ready = cycle_ + 1 + shape_.read_stages;
    control.rows = rows;
    if (preload != nullptr) {
      control.tag = {false, preload->accumulate, preload->slot, preload->c_row, preload->c_rows};
    }
    controls_.push(control);
    const auto step = [rows](bool fires, std::uint32_t& row, bool& begun) {
      if (!fires) return;
      row = row + 1 == rows ? 0 : row + 1;
      begun = true;
    };
    step(a, a_, a_begun_);
    step(zeros, zeros_, zeros_begun_);
    step(weights, weights_, weights_begun_);
  }
  if (ends) finish(work);
}

void ExecutePath::finish(Work work) {
  a_begun_ = zeros_begun_ = weights_begun_ = false;
  a_ = zeros_ = weights_ = 0;
  work_ = Work::kNone;
  pops_ = work == Work::kBoth ? 2 : 1;
  // A preload ends with its results.
  if (work != Work::kPreload) ended_[0] = queue_.at(0).slot;
}

void ExecutePath::step(std::uint32_t scratchpad_banks) {
  const bool queue_full = queue_.full();
  enter_array();
  const bool accepts = !controls_full_ || popped_control_;
  pops_ = 0;
  if (work_ == Work::kNone) work_ = choose();
  if (work_ != Work::kNone) {
    read_row(work_, scratchpad_banks, accepts);
  }
  const bool moves = !incoming_.empty() && !queue_full;
  for (; pops_ > 0; --pops_) queue_.pop();
  if (moves) {
    queue_.push(incoming_.front());
    incoming_.pop();
  }
  ++cycle_;
}

}  // namespace systole::hw::loop

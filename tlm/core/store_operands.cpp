/// Tensor operands of the store unit: asked for ahead of their rows, into a buffer of their own.
#include <algorithm>

#include "hw/program/program_ranges.h"
#include "tlm/core/store_unit.h"

namespace systole::tlm_model {

const hw::Chain& StoreUnit::chain_of(const Entry& entry) const {
  return hw::chain_of(entry.command.as<hw::cmd::Result>()->chain, processor().program());
}

Entry* StoreUnit::wants_operands() const {
  const auto wants = [this](const Entry* entry) {
    return entry != nullptr && entry != operands_of_ && hw::tensor_operands(chain_of(*entry)) != 0;
  };
  if (uses_operands_) return wants(running_) ? running_ : nullptr;
  Entry* const next = upcoming();
  return wants(next) && next->is_readable() ? next : nullptr;
}

void StoreUnit::fetch_ahead() {
  for (;;) {
    Entry* const entry = wants_operands();
    if (entry == nullptr) {
      // For what can change that, which is less often than all that does.
      const Entry* const next = upcoming();
      if (next == nullptr) {
        wait(started_or_ended_ | processor().dispatched(hw::Unit::kStore));
      } else if (next->is_readable()) {
        wait(started_or_ended_);
      } else {
        wait(started_or_ended_ | processor().completed());
      }
      continue;
    }
    begin_operands(*entry);
    // The command before has started in a cycle before, and its rows have left.
    const std::uint64_t begin =
        std::max({cycle(), operands_free_, entry == running_ ? 0 : started_ + 1});
    const std::uint64_t rows = entry->command.as<hw::cmd::Result>()->m;
    for (std::uint64_t first = 0; first < rows; first += operand_block_) {
      const std::uint64_t blocks = first / operand_block_;
      while (blocks > operands_used_.size() + 1) wait(operands_go_);
      fetch_operands(first, std::min(operand_block_, rows - first),
                     blocks < 2 ? begin : operands_used_[blocks - 2]);
    }
  }
}

void StoreUnit::begin_operands(const Entry& entry) {
  const auto& result = *entry.command.as<hw::cmd::Result>();
  const hw::Chain& chain = chain_of(entry);
  const std::vector<hw::DType> types = hw::tensor_types(chain);
  const std::vector<hw::DramTile> tiles = hw::operands_of(result.chain, processor().program());
  bool with_values = functional_;
  if (functional_ && memory_.values != nullptr) {
    hw::ChainOperands operands;
    hw::Range written;
    with_values = !moves_apart(entry, operands, written);
    if (with_values) memory_.values->await();
  }
  operands_.resize(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    operands_[i].tile = tiles[i];
    operands_[i].element = hw::bytes_of(types[i]);
    operands_[i].row_bytes = result.n * operands_[i].element;
    operands_[i].rows.resize(with_values ? result.m * operands_[i].row_bytes : 0);
  }
  operand_block_ = hw::operand_block(result, chain, machine_units_);
  arrivals_ = {result.m, result.n, lanes_, beat_bytes_};
  operands_used_.clear();
  operands_of_ = &entry;
}

void StoreUnit::fetch_operands(std::uint64_t first, std::uint64_t rows, std::uint64_t not_before) {
  // One operand after the other: row by row, they would take the rows of DRAM from each other.
  for (OperandStream& operand : operands_) {
    arrivals_.begin_rows(operand.element, &operand == &operands_.back());
    const std::uint64_t address = operand.tile.address + first * operand.tile.pitch;
    std::uint64_t at = 0;  // bytes of a row that have arrived
    read_dma->move(
        tlm::TLM_READ_COMMAND,
        {address, operand.tile.pitch,
         operand.rows.empty() ? nullptr : operand.rows.data() + first * operand.row_bytes,
         operand.row_bytes, rows, operand.row_bytes},
        not_before, [&](const DmaPort::Arrival& arrival) {
          arrivals_.arrive(address + arrival.row * operand.tile.pitch + at, arrival.bytes,
                           arrival.cycle);
          at = arrival.ends_row ? 0 : at + arrival.bytes;
          operands_arrive_.notify();
        });
  }
}

hw::InputTimes StoreUnit::input_times(const Flow& flow) const {
  const hw::SumReads* const sums = memory_.sums.serves() ? &memory_.sums : nullptr;
  if (!flow.has_operands) return {nullptr, 0, 0, sums};
  // What has not been asked for takes a request and its answer.
  const std::uint64_t not_before = cycle() + loads_known_;
  static constexpr std::uint64_t kNone = 0;
  hw::InputTimes times{&kNone, 0, not_before, sums};
  if (operands_of_ == running_) arrivals_.tell(times);
  return times;
}

std::uint64_t StoreUnit::sums_known_at(const Flow& flow) const {
  return hw::SumTraffic::known_at(flow.rows.reached(), cycle());
}

void StoreUnit::await_sums(const Flow& flow) {
  const std::uint64_t known = memory_.sums.known_before();
  memory_.sums.keep_from(flow.rows.reached());
  memory_.advance_sums(cycle());
  if (memory_.sums.known_before() > known) return;  // time has gone on
  wait_cycles(sums_known_at(flow) - cycle());
  memory_.advance_sums(cycle());
}

void StoreUnit::follow(Flow& flow) {
  followed_ = nullptr;
  if (flow.released || !memory_.sums.serves()) return;
  flow.rows.go_on(queue_, input_times(flow));
  if (flow.rows.waits_for_sums() && memory_.sums.known() < cycle()) {
    memory_.sums.keep_from(flow.rows.reached());
    memory_.advance_sums(cycle());
    flow.rows.go_on(queue_, input_times(flow));
  }
  followed_ = &flow;
  if (!flow.rows.waits_for_sums()) return follow_.cancel();
  follow_.notify(from_ps(ps(sums_known_at(flow))) - sc_core::sc_time_stamp());
}

void StoreUnit::follow_inputs() {
  if (followed_ == nullptr) return;
  Flow& flow = *followed_;
  follow(flow);
  learn(flow);
  if (flow.released) followed_ = nullptr;
}

void StoreUnit::await_inputs(const Flow& flow, std::uint64_t known) {
  if (flow.rows.waits_for_sums()) return await_sums(flow);
  if (operands_known() != known) return;
  const std::uint64_t now = flow.rows.reached() - loads_known_;
  if (now <= cycle()) return;  // time has gone on
  if (flow.rows.is_empty()) {
    wait(operands_arrive_);
  } else {
    // Vectors in the stages may leave before those to come matter.
    wait(from_ps(ps(now)) - sc_core::sc_time_stamp(), operands_arrive_);
  }
}

void StoreUnit::use_operands(std::uint64_t rows, std::uint64_t cycle) {
  if (rows % operand_block_ != 0) return;
  operands_used_.push_back(cycle);
  operands_go_.notify();
}

}  // namespace systole::tlm_model

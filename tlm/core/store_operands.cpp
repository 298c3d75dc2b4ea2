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
  if (running_ != nullptr && hw::tensor_operands(chain_of(*running_)) != 0) {
    return wants(running_) ? running_ : nullptr;
  }
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
    // The command before has started in a cycle before.
    const std::uint64_t begin = std::max(cycle(), entry == running_ ? 0 : started_ + 1);
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
    operands_[i].row_bytes = result.n * hw::bytes_of(types[i]);
    operands_[i].rows.resize(with_values ? result.m * operands_[i].row_bytes : 0);
  }
  std::uint64_t row_bytes = 0;
  for (const OperandStream& operand : operands_) row_bytes += operand.row_bytes;
  operand_block_ = hw::operand_block(result.m, row_bytes, hw::transposes(chain), machine_units_);
  operands_at_.assign(result.m, 0);
  operands_known_ = 0;
  operands_used_.clear();
  operands_of_ = &entry;
}

void StoreUnit::fetch_operands(std::uint64_t first, std::uint64_t rows, std::uint64_t not_before) {
  // One operand after the other: row by row, they would take the rows of DRAM from each other.
  std::uint64_t tiles = 0;  // cycle with which those before the last operand are there
  for (OperandStream& operand : operands_) {
    const bool is_last = &operand == &operands_.back();
    for (std::uint64_t row = first; row < first + rows; ++row) {
      const std::uint64_t arrived = read_dma->read(
          operand.tile.address + row * operand.tile.pitch,
          operand.rows.empty() ? nullptr : operand.rows.data() + row * operand.row_bytes,
          operand.row_bytes, not_before);
      if (!is_last) {
        tiles = std::max(tiles, arrived);
        continue;
      }
      // Rows are used in their order.
      operands_at_[row] = std::max({tiles, row == 0 ? 0 : operands_at_[row - 1], arrived});
      operands_known_ = row + 1;
      operands_arrive_.notify();
    }
  }
}

void StoreUnit::await_operands(std::uint64_t rows) {
  while (operands_of_ != running_ || operands_known_ < rows) wait(operands_arrive_);
}

void StoreUnit::use_operands(std::uint64_t rows, std::uint64_t cycle) {
  if (rows % operand_block_ != 0) return;
  operands_used_.push_back(cycle);
  operands_go_.notify();
}

}  // namespace systole::tlm_model

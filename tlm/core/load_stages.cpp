/// Loads whose rows pass stages before the anchor.
#include <algorithm>
#include <utility>

#include "base/round.h"
#include "hw/core/staged_load.h"
#include "hw/kernel/row_kernels.h"
#include "hw/program/program_ranges.h"
#include "tlm/core/load_unit.h"

namespace systole::tlm_model {

// One with stages has the unit to itself: all loads before it are complete.
void LoadUnit::await_turn(const Entry& entry) {
  if (!entry.command.as<hw::cmd::Load>()->pre) return;
  while (!placing_.empty()) wait(placed_);
  wait_cycles(all_complete_ - std::min(all_complete_, cycle()));
  account().stall_until(cycle(), kMemory);
}

void LoadUnit::observe_parameters(const hw::ChainUse& use, const hw::Chain& chain,
                                  std::uint64_t cols, std::uint64_t started) {
  const std::uint64_t step = memory_.observer->step();
  for (StoredUse& part : memory_.parameter_uses(use, chain, cols, started)) {
    part.first_step = part.last_step = step;
    memory_.observer->use(std::move(part));
  }
}

void LoadUnit::apply(const hw::cmd::Load& load, bool to_accumulator, const hw::Chain& chain,
                     const hw::TensorRows& rows, const std::vector<hw::TensorRows>& tensors) {
  std::vector<std::int32_t> values(std::size_t{load.m} * load.n);
  for (std::size_t row = 0; row < load.m; ++row) {
    hw::row::widen(static_cast<const std::uint8_t*>(rows.data) + row * rows.pitch, load.type,
                   values.data() + row * load.n, load.n);
  }
  hw::ChainOperands operands;
  operands.accumulator = values.data();
  operands.accumulator_pitch = load.n;
  operands.parameters = memory_.parameters(load.pre->parameters);
  std::copy(tensors.begin(), tensors.end(), operands.tensors.begin());
  if (hw::statistics_words(chain) != 0) {
    operands.row_statistics = memory_.statistics.data() + load.pre->statistics;
  }
  operands.out = to_accumulator ? static_cast<void*>(memory_.accumulators() + load.to.address)
                                : memory_.scratchpad.data() + load.to.address;
  operands.out_pitch = load.to.pitch * hw::bytes_of(chain.out);
  operands.rows = load.m;
  operands.cols = load.n;
  operands.valid_cols = load.pre->valid_cols;
  hw::apply_chain(chain, operands);
  if (to_accumulator && memory_.accumulator_engine != nullptr) {
    memory_.accumulator_engine->begin_at(cycle());
    memory_.accumulator_engine->write({load.to.address, load.m, load.n, load.to.pitch},
                                      memory_.accumulators() + load.to.address, load.to.pitch,
                                      false);
  }
}

bool LoadUnit::post_stages(const hw::cmd::Load& load, bool to_accumulator, const hw::Chain& chain) {
  if (memory_.values == nullptr) return false;
  ValueQueue& queue = *memory_.values;
  const auto rows_at = [&](const hw::DramTile& tile, hw::DType type) -> hw::TensorRows {
    const std::uint64_t bytes = load.n * hw::bytes_of(type);
    return {queue.at({tile.address, (load.m - 1) * tile.pitch + bytes}), tile.pitch};
  };
  const hw::TensorRows rows = rows_at(load.from, load.type);
  bool inside = rows.data != nullptr;
  std::vector<hw::TensorRows> tensors;
  hw::for_each_operand(*load.pre, processor().program(),
                       [&](const hw::DramTile& tile, hw::DType type) {
                         tensors.push_back(rows_at(tile, type));
                         inside &= tensors.back().data != nullptr;
                       });
  if (!inside) {
    // Its requests will be answered with an error.
    queue.await();
    return false;
  }
  queue.post([this, load, to_accumulator, &chain, rows, tensors] {
    apply(load, to_accumulator, chain, rows, tensors);
  });
  return true;
}

std::uint64_t LoadUnit::execute_stages(const hw::cmd::Load& load, bool to_accumulator) {
  const hw::Chain& chain = hw::chain_of(*load.pre, processor().program());
  const std::vector<hw::DType> types = hw::tensor_types(chain);
  const std::vector<hw::DramTile> tiles = hw::operands_of(*load.pre, processor().program());
  const bool with_values = functional_ && !post_stages(load, to_accumulator, chain);
  const std::uint64_t started = cycle();
  constexpr auto kClient = BankedSram::Client::kLoad;
  BankedSram &scratchpad = memory_.scratchpad, &sums = memory_.accumulator;
  hw::StagedLoad staged(load, chain, machine_, to_accumulator);
  const auto read_word = [&](const hw::BankAccess& banks, std::uint64_t at) {
    scratchpad.serve(kClient, banks, at);
    events().scratchpad_bytes += scratchpad.count(scratchpad.word_bytes());
  };
  const auto write = [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t words,
                         std::uint64_t end) {
    if (to_accumulator) {
      sums.show(kClient, {{at, at + bytes, words}}, end - words, end);
      events().accumulator_bytes += sums.count(words * sums.word_bytes());
      return;
    }
    const hw::BankAccess banks = hw::bank_access(at, bytes, scratchpad.bank_size());
    for (std::uint64_t cycle = end - words; cycle < end; ++cycle) {
      scratchpad.serve(kClient, banks, cycle);
    }
    events().scratchpad_bytes += scratchpad.count(words * scratchpad.word_bytes());
  };
  const std::uint64_t known = hw::loads_known_cycles(machine_);
  std::uint64_t beats = 0, arrived = started;
  const auto read = [&](const hw::DramTile& tile, std::uint64_t element, bool is_last,
                        std::vector<std::uint8_t>& into) {
    const std::uint64_t bytes = load.n * element;
    if (with_values) into.resize(load.m * bytes);
    for (std::uint64_t row = 0; row < load.m; ++row) {
      beats += blocks_touched(tile.address + row * tile.pitch, bytes, machine_.bus.width_bytes);
    }
    staged.begin_rows(element, is_last);
    std::uint64_t at = 0;  // bytes of the row that have arrived
    const DmaPort::Rows rows{tile.address, tile.pitch, with_values ? into.data() : nullptr,
                             bytes,        load.m,     bytes};
    const std::uint64_t last = dma->read_rows(rows, [&](const DmaPort::Arrival& arrival) {
      staged.arrive(tile.address + arrival.row * tile.pitch + at, arrival.bytes, arrival.cycle);
      at = arrival.ends_row ? 0 : at + arrival.bytes;
      staged.go_on(cycle() + known, set_up_, read_word, write);
    });
    arrived = std::max(arrived, last);
  };
  operands_.resize(types.size());
  read(load.from, hw::bytes_of(load.type), types.empty(), staging_);
  for (std::size_t i = 0; i < types.size(); ++i) {
    read(tiles[i], hw::bytes_of(types[i]), i + 1 == types.size(), operands_[i]);
  }
  dma->synchronise();
  staged.go_on(hw::StagedLoad::kAllKnown, set_up_, read_word, write);
  const std::uint64_t completed = staged.completed();

  const std::uint64_t elements = std::uint64_t{load.m} * load.n;
  if (with_values) {
    std::vector<hw::TensorRows> tensors;
    for (const auto& operand : operands_) {
      tensors.push_back({operand.data(), operand.size() / load.m});
    }
    apply(load, to_accumulator, chain, {staging_.data(), load.n * hw::bytes_of(load.type)},
          tensors);
  }
  events().postop_elements = elements * chain.stages.size();
  stage_operations_ += events().postop_elements;
  if (recorder() != nullptr) {
    for (const std::uint64_t left : staged.left()) recorder()->add(arrived_, ps(left), 1);
  }
  if (with_values && memory_.observer != nullptr) {
    observe_parameters(*load.pre, chain, load.n, started);
    StoredUse use;
    use.cycles.assign(staged.left().begin(), staged.left().end());
    const std::uint64_t element = hw::bytes_of(chain.out);
    use.space = to_accumulator ? hw::Space::kAccumulator : hw::Space::kScratchpad;
    use.write = true;
    use.first_step = use.last_step = memory_.observer->last_step();
    use.address = load.to.address * element;
    use.pitch = load.to.pitch * element;
    use.rows = load.m;
    use.bytes = load.n * element;
    memory_.observer->use(std::move(use));
  }
  wait_cycles(completed - std::min(completed, cycle()));
  // As of other loads, beats are work; after the last one the stages finish theirs.
  const std::uint64_t elapsed = completed - started;
  const std::uint64_t in_stages = completed - std::min(arrived, completed);
  const std::uint64_t busy = std::min(elapsed - in_stages, beats);
  account_busy(busy);
  account_stall(elapsed - in_stages - busy, kMemory);
  account_stall(in_stages, kStages);
  return completed;
}

}  // namespace systole::tlm_model

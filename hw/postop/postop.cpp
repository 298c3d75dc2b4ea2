#include "hw/postop/postop.h"

#include <algorithm>

#include "base/hash.h"
#include "base/round.h"

namespace systole::hw {
namespace {

template <typename Predicate>
bool any_stage(const Chain& chain, Predicate predicate) {
  return std::any_of(chain.stages.begin(), chain.stages.end(), predicate);
}

}  // namespace

std::uint32_t parameter_words(const Chain& chain) {
  std::uint32_t words = 0;
  for (const Stage& stage : chain.stages) words += parameter_words(stage);
  return words;
}

bool is_row_wise(const Chain& chain) {
  return any_stage(chain, [](const Stage& stage) { return stage_info(stage.op).row_wise; });
}

bool has_stage(const Chain& chain, StageOp op) {
  return any_stage(chain, [op](const Stage& stage) { return stage.op == op; });
}

std::size_t tensor_operands(const Chain& chain) {
  return static_cast<std::size_t>(
      std::count_if(chain.stages.begin(), chain.stages.end(),
                    [](const Stage& stage) { return stage.operand == Operand::kTensor; }));
}

std::vector<DType> tensor_types(const Chain& chain) {
  std::vector<DType> types;
  for (const Stage& stage : chain.stages) {
    if (stage.operand == Operand::kTensor) types.push_back(stage.tensor);
  }
  return types;
}

bool writes_row_statistics(const Chain& chain) {
  return any_stage(chain, [](const Stage& stage) { return statistics_written(stage) != 0; });
}

bool reads_row_statistics(const Chain& chain) {
  return any_stage(chain, [](const Stage& stage) { return statistics_read(stage) != 0; });
}

std::uint32_t statistics_words(const Chain& chain) {
  std::uint32_t words = 0;
  for (const Stage& stage : chain.stages) {
    words = std::max({words, statistics_read(stage), statistics_written(stage)});
  }
  return words;
}

bool uses_valid_cols(const Chain& chain) {
  return any_stage(chain, [](const Stage& stage) {
    return stage.op == StageOp::kSoftmax ||
           (stage.op == StageOp::kMask && stage.operand == Operand::kImmediate);
  });
}

std::uint64_t chain_key(const Chain& chain) {
  std::uint64_t key = static_cast<std::uint64_t>(chain.out);
  const auto add = [&key](std::uint64_t word) { key = hash_with(key, word); };
  for (const Stage& stage : chain.stages) {
    add(static_cast<std::uint64_t>(stage.op) | static_cast<std::uint64_t>(stage.operand) << 8U |
        static_cast<std::uint64_t>(stage.rounding) << 16U |
        static_cast<std::uint64_t>(stage.tensor) << 24U |
        static_cast<std::uint64_t>(stage.side) << 32U);
    for (const std::int64_t value : stage.imm) add(static_cast<std::uint64_t>(value));
  }
  return key;
}

bool transposes(const Chain& chain) {
  return !chain.stages.empty() && chain.stages.back().op == StageOp::kTranspose;
}

ChainCycles chain_cycles(const Chain& chain, std::uint64_t rows, std::uint64_t cols,
                         std::uint32_t lanes) {
  if (rows == 0 || cols == 0) return {};
  const std::uint64_t vectors = cols / lanes + (cols % lanes != 0 ? 1 : 0);
  ChainCycles cycles;
  std::uint64_t passes = 1, latency = 0;
  cycles.per_row = vectors;
  for (const Stage& stage : chain.stages) {
    // Its serial units work while the first row is in the stages before. After a row-wise stage
    // they have long finished with it.
    const std::uint64_t lead = stage_lead(stage);
    if (passes == 1) cycles.lead = std::max(cycles.lead, lead - std::min(lead, latency));
    latency += stage_latency(stage);
    passes += statistics_passes(stage);
    cycles.per_row = std::max(cycles.per_row, stage_interval(stage, vectors));
    if (stage.op == StageOp::kTranspose) cycles.fill += cols;
  }
  const std::uint64_t reading = vectors * passes;
  cycles.reads = reading * rows;
  const std::uint64_t intervals_ahead = passes == kMostPasses ? kMostPasses - 1 : 0;
  // The last row takes no more than its passes, the rows before it an interval each.
  cycles.fill +=
      latency + cycles.lead + intervals_ahead * cycles.per_row + reading - cycles.per_row;
  return cycles;
}

std::uint64_t piece_cycles(const Chain& chain, std::uint64_t cols, std::uint32_t lanes,
                           std::uint64_t piece) {
  if (transposes(chain)) return 0;
  const std::uint64_t element = bytes_of(chain.out), rest = cols % lanes;
  const std::uint64_t of_rest = rest == 0 ? 0 : ceil_div(rest * element, piece) - 1;
  return cols / lanes * (ceil_div(lanes * element, piece) - 1) + of_rest;
}

}  // namespace systole::hw

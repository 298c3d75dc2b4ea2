#include "mapper/group/mask_table.h"

#include <algorithm>
#include <vector>

#include "hw/number/dyadic.h"
#include "hw/number/integer.h"
#include "hw/postop/stage_constants.h"
#include "model/checkpoint/keep_mask.h"

namespace systole::mapper {
namespace {

/// What a score can be before the mask. Operands of magnitude 127, as all of the quantiser's.
hw::IntRange score_range(const MaskedScores& scores) {
  constexpr std::int64_t kLargestProduct = 127 * 127;
  const std::size_t stages = scores.softmax.stages.size() - 1;
  if (stages == 0) {
    const std::int64_t largest = scores.query.cols * kLargestProduct;
    return {-largest, largest};
  }
  const hw::Stage& last = scores.softmax.stages[stages - 1];
  switch (last.op) {
    case hw::StageOp::kRequantise:
      return {last.imm[2], last.imm[3]};
    case hw::StageOp::kClamp:
      return {last.imm[0], last.imm[1]};
    case hw::StageOp::kMul:
    case hw::StageOp::kDivide:
      return {last.imm[1], last.imm[2]};
    case hw::StageOp::kGelu:
    case hw::StageOp::kSilu:
    case hw::StageOp::kTanh:
      return {last.imm[5], last.imm[6]};
    default:
      return hw::full_range(32);
  }
}

/// The most that a pruned score can be, and whether a kept one stays what it is.
struct Pruned {
  std::int64_t highest;
  bool keeps;
};

Pruned pruned_by(const hw::Stage& mask, hw::IntRange scores) {
  if (mask.op == hw::StageOp::kMask) return {mask.imm[0], true};
  const auto added = [&mask](std::int64_t code) {
    if (mask.imm[0] == 0) return code;
    return hw::requantise(code, hw::dyadic_at(mask, 0), mask.rounding, {mask.imm[2], mask.imm[3]});
  };
  return {hw::saturate(scores.hi + added(model::kPrunedCode), hw::full_range(32)), added(0) == 0};
}

bool vanish(const MaskedScores& scores) {
  const hw::IntRange range = score_range(scores);
  const Pruned pruned = pruned_by(scores.mask->stage()->stage, range);
  const hw::Stage& softmax = scores.softmax.stages.back();
  const hw::Dyadic factor = hw::dyadic_at(softmax, 1);
  return pruned.keeps && factor.multiplier != 0 &&
         range.lo - pruned.highest >=
             model::vanishing_distance(factor, static_cast<unsigned>(softmax.imm[3]));
}

/// The table, if it is constant, has an element of a byte for each cell, and only such as mean
/// something.
const std::vector<std::uint8_t>* table_of(const model::Graph& graph, const MaskedScores& scores) {
  const model::Tensor& table = graph.tensors[scores.mask->second().tensor];
  const bool selects = scores.mask->stage()->stage.op == hw::StageOp::kMask;
  const auto is_code = [selects](std::uint8_t byte) {
    return selects || byte == 0 || static_cast<std::int8_t>(byte) == model::kPrunedCode;
  };
  const bool fits = table.kind == model::Tensor::Kind::kConstant &&
                    (table.type == hw::DType::kS8 || (selects && table.type == hw::DType::kU8)) &&
                    table.data.size() == std::size_t{scores.query.rows} * scores.key.rows &&
                    std::all_of(table.data.begin(), table.data.end(), is_code);
  return fits ? &table.data.get() : nullptr;
}

}  // namespace

std::optional<model::AttentionMask> kept_cells(const model::Graph& graph,
                                               const MaskedScores& scores) {
  model::AttentionMask mask({1, 1, scores.query.rows, scores.key.rows});
  if (scores.mask == nullptr) {
    for (std::size_t cell = 0; cell < mask.shape().cells(); ++cell) mask.keep(cell);
    return mask;
  }
  const std::vector<std::uint8_t>* const table = table_of(graph, scores);
  if (table == nullptr || !vanish(scores)) return std::nullopt;
  const bool selects = scores.mask->stage()->stage.op == hw::StageOp::kMask;
  std::size_t kept_of_row = 0;
  for (std::size_t cell = 0; cell < table->size(); ++cell) {
    if (((*table)[cell] != 0) == selects) {
      mask.keep(cell);
      ++kept_of_row;
    }
    if ((cell + 1) % scores.key.rows != 0) continue;
    // The softmax of a row without kept cells is not that of the table's codes.
    if (kept_of_row == 0) return std::nullopt;
    kept_of_row = 0;
  }
  return mask;
}

}  // namespace systole::mapper

#include "model/reference_stage.h"

#include <algorithm>
#include <stdexcept>

#include "hw/dyadic.h"
#include "hw/gelu.h"
#include "hw/layernorm.h"
#include "hw/softmax.h"

namespace systole::model {
namespace {

hw::Dyadic factor_at(const hw::Stage& stage, std::size_t i) {
  return {static_cast<std::int32_t>(stage.imm[i]), static_cast<std::int8_t>(stage.imm[i + 1])};
}

hw::IntRange range_at(const hw::Stage& stage, std::size_t i) {
  return {stage.imm[i], stage.imm[i + 1]};
}

void requantise_row(const Node& node, StageRow& row) {
  const hw::Stage& stage = node.stage;
  const std::size_t n = row.in.size();
  for (std::size_t c = 0; c < n; ++c) {
    const hw::Dyadic factor =
        stage.per_channel
            ? hw::Dyadic{node.parameters[c], static_cast<std::int8_t>(node.parameters[n + c])}
            : factor_at(stage, 0);
    row.out[c] = hw::requantise(row.in[c], factor, stage.rounding, range_at(stage, 2));
  }
}

void add_tensor_row(const hw::Stage& stage, StageRow& row) {
  const hw::Dyadic factor = factor_at(stage, 0);
  for (std::size_t c = 0; c < row.in.size(); ++c) {
    const std::int64_t addend =
        factor.multiplier == 0
            ? row.tensor[c]
            : hw::requantise(row.tensor[c], factor, stage.rounding, range_at(stage, 2));
    row.out[c] = row.in[c] + addend;
  }
}

void gelu_row(const hw::Stage& stage, StageRow& row) {
  const hw::GeluConstants constants{stage.imm[0], stage.imm[1], stage.imm[2], factor_at(stage, 3)};
  for (std::size_t c = 0; c < row.in.size(); ++c) {
    row.out[c] = hw::requantise(hw::gelu_product(row.in[c], constants), constants.output,
                                hw::Rounding::kHalfUp, range_at(stage, 5));
  }
}

void softmax_row(const Node& node, StageRow& row) {
  const hw::Stage& stage = node.stage;
  hw::SoftmaxConstants constants{};
  constants.mode = static_cast<hw::SoftmaxMode>(stage.imm[0]);
  constants.score = factor_at(stage, 1);
  constants.exp = hw::make_int_exp_constants(static_cast<unsigned>(stage.imm[3]));
  constants.exp_to_code = factor_at(stage, 4);
  constants.output_bits = static_cast<unsigned>(stage.imm[6]);
  constants.factor_bits = hw::SoftmaxOptions{}.factor_bits;
  std::vector<std::uint16_t> codes(row.in.size());
  std::vector<std::uint8_t> keep(row.in.size(), 1);
  for (std::size_t c = node.kept + row.index; node.kept != 0 && c < keep.size(); ++c) keep[c] = 0;
  row.row_sum = hw::softmax_row(row.in.data(), keep.data(), row.in.size(), constants, codes.data());
  std::copy(codes.begin(), codes.end(), row.out.begin());
}

void layer_norm_row(const Node& node, StageRow& row) {
  const hw::Stage& stage = node.stage;
  const std::size_t n = row.in.size();
  const hw::LayerNormStatistics statistics = hw::layernorm_statistics(row.in.data(), n);
  for (std::size_t c = 0; c < n; ++c) {
    const std::int64_t norm =
        hw::layernorm_normalise(row.in[c], statistics, static_cast<unsigned>(stage.imm[0]));
    const std::int64_t sum = norm * node.parameters[c] + node.parameters[n + c];
    row.out[c] = hw::saturate(
        hw::shift_right(sum, static_cast<unsigned>(stage.imm[1]), hw::Rounding::kHalfUp),
        range_at(stage, 2));
  }
}

}  // namespace

void apply_stage_row(const Node& node, StageRow& row) {
  const hw::Stage& stage = node.stage;
  const std::size_t n = row.in.size();
  if (node.parameters.size() != n * hw::parameter_words(stage)) {
    throw std::invalid_argument(
        "node '" + node.name + "': " + std::to_string(node.parameters.size()) +
        " parameters, expected " + std::to_string(n * hw::parameter_words(stage)));
  }
  row.out.resize(n);
  switch (stage.op) {
    case hw::StageOp::kBias:
      for (std::size_t c = 0; c < n; ++c) {
        row.out[c] = std::int64_t{row.in[c]} + node.parameters[c];
      }
      return;
    case hw::StageOp::kRequantise:
      return requantise_row(node, row);
    case hw::StageOp::kAddTensor:
      return add_tensor_row(stage, row);
    case hw::StageOp::kClamp:
      for (std::size_t c = 0; c < n; ++c) row.out[c] = hw::saturate(row.in[c], range_at(stage, 0));
      return;
    case hw::StageOp::kRelu:
      for (std::size_t c = 0; c < n; ++c) row.out[c] = std::max(row.in[c], 0);
      return;
    case hw::StageOp::kGelu:
      return gelu_row(stage, row);
    case hw::StageOp::kSoftmax:
      return softmax_row(node, row);
    case hw::StageOp::kDivideRowSum:
      for (std::size_t c = 0; c < n; ++c) row.out[c] = hw::deferred_divide(row.in[c], row.row_sum);
      return;
    case hw::StageOp::kLayerNorm:
      return layer_norm_row(node, row);
  }
  throw std::invalid_argument("node '" + node.name + "': unknown stage");
}

}  // namespace systole::model

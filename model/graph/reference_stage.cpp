#include "model/graph/reference_stage.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/function/rms_norm.h"
#include "hw/function/rope.h"
#include "hw/function/silu.h"
#include "hw/function/softmax.h"
#include "hw/number/dyadic.h"

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
        stage.operand == hw::Operand::kChannel
            ? hw::Dyadic{node.parameters[c], static_cast<std::int8_t>(node.parameters[n + c])}
            : factor_at(stage, 0);
    row.out[c] = hw::requantise(row.in[c], factor, stage.rounding, range_at(stage, 2));
  }
}

/// The operand of column c.
std::int32_t operand_at(const Node& node, const StageRow& row, std::size_t value, std::size_t c) {
  switch (node.stage.operand) {
    case hw::Operand::kImmediate:
      return static_cast<std::int32_t>(node.stage.imm[value]);
    case hw::Operand::kChannel:
      return node.parameters[c];
    case hw::Operand::kRow:
      return static_cast<std::int32_t>(row.statistics.at(0));
    case hw::Operand::kTensor:
      return row.tensor[c];
    case hw::Operand::kSaved:
      break;  // of the mapper's making: in a graph it is a tensor
  }
  throw std::invalid_argument("node '" + node.name + "': a graph has no saved operand");
}

std::int64_t saturate32(std::int64_t x) { return hw::saturate(x, hw::full_range(32)); }

void sum_row(const Node& node, StageRow& row) {
  const hw::Stage& stage = node.stage;
  const std::int64_t sign = stage.op == hw::StageOp::kSub ? -1 : 1;
  const hw::Dyadic factor = factor_at(stage, 0);
  for (std::size_t c = 0; c < row.in.size(); ++c) {
    std::int64_t y = operand_at(node, row, 4, c);
    if (factor.multiplier != 0) y = hw::requantise(y, factor, stage.rounding, range_at(stage, 2));
    row.out[c] = saturate32(row.in[c] + sign * y);
  }
}

void product_row(const Node& node, StageRow& row) {
  const hw::Stage& stage = node.stage;
  for (std::size_t c = 0; c < row.in.size(); ++c) {
    const std::int64_t product = std::int64_t{row.in[c]} * operand_at(node, row, 3, c);
    row.out[c] =
        hw::saturate(hw::shift_right(product, static_cast<unsigned>(stage.imm[0]), stage.rounding),
                     range_at(stage, 1));
  }
}

void mask_row(const Node& node, StageRow& row) {
  const bool causal = node.stage.operand == hw::Operand::kImmediate;
  const std::size_t n = row.in.size();
  const std::size_t kept = node.kept == 0 ? n : std::min(n, node.kept + row.index);
  for (std::size_t c = 0; c < n; ++c) {
    const bool passes = causal ? c < kept : operand_at(node, row, 0, c) != 0;
    row.out[c] = passes ? row.in[c] : node.stage.imm[0];
  }
}

void exp_row(const hw::Stage& stage, StageRow& row) {
  const hw::IntExpConstants constants =
      hw::make_int_exp_constants(static_cast<unsigned>(stage.imm[2]));
  for (std::size_t c = 0; c < row.in.size(); ++c) {
    const std::int64_t argument = hw::requantise(std::min(row.in[c], 0), factor_at(stage, 0),
                                                 hw::Rounding::kHalfUp, hw::full_range(32));
    row.out[c] = hw::int_exp(argument, constants);
  }
}

void silu_row(const hw::Stage& stage, StageRow& row) {
  const hw::SiluConstants constants{factor_at(stage, 0),
                                    hw::make_int_exp_constants(static_cast<unsigned>(stage.imm[2])),
                                    factor_at(stage, 3)};
  for (std::size_t c = 0; c < row.in.size(); ++c) {
    const auto q = static_cast<std::int32_t>(hw::saturate(row.in[c], hw::full_range(16)));
    row.out[c] = hw::silu(q, constants, range_at(stage, 5));
  }
}

void rope_row(const hw::Stage& stage, StageRow& row) {
  const auto rotated = [&](std::int64_t sum) {
    return hw::saturate(hw::shift_right(sum, static_cast<unsigned>(stage.imm[0]), stage.rounding),
                        range_at(stage, 1));
  };
  const auto input = [&row](std::size_t c) {
    return hw::saturate(row.in[c], hw::full_range(hw::kRopeInputBits));
  };
  for (std::size_t c = 0; c + 1 < row.in.size(); c += 2) {
    const std::int64_t x0 = input(c), x1 = input(c + 1);
    const std::int64_t cosine = row.tensor[c], sine = row.tensor[c + 1];
    row.out[c] = rotated(x0 * cosine - x1 * sine);
    row.out[c + 1] = rotated(x0 * sine + x1 * cosine);
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
  const std::uint32_t sum =
      hw::softmax_row(row.in.data(), keep.data(), row.in.size(), constants, codes.data());
  if (constants.mode == hw::SoftmaxMode::kDeferred) row.statistics = {sum};
  std::copy(codes.begin(), codes.end(), row.out.begin());
}

/// The sums that a stage before left for the row.
std::pair<std::int64_t, std::uint64_t> sums_of(const StageRow& row) {
  const auto wide = [&row](std::size_t i) {
    return std::uint64_t{row.statistics.at(i)} | std::uint64_t{row.statistics.at(i + 1)} << 32;
  };
  return {static_cast<std::int64_t>(wide(0)), wide(2)};
}

void norm_row(const Node& node, const hw::LayerNormStatistics& statistics, StageRow& row) {
  const hw::Stage& stage = node.stage;
  const std::size_t n = row.in.size();
  for (std::size_t c = 0; c < n; ++c) {
    const std::int64_t norm =
        hw::layernorm_normalise(row.in[c], statistics, static_cast<unsigned>(stage.imm[0]));
    const std::int64_t addend = stage.op == hw::StageOp::kRmsNormApply ? 0 : node.parameters[n + c];
    const std::int64_t sum = norm * node.parameters[c] + addend;
    row.out[c] = hw::saturate(
        hw::shift_right(sum, static_cast<unsigned>(stage.imm[1]), hw::Rounding::kHalfUp),
        range_at(stage, 2));
  }
}

void saturate_to(unsigned bits, std::vector<std::int32_t>& values) {
  for (std::int32_t& x : values) {
    x = static_cast<std::int32_t>(hw::saturate(x, hw::full_range(bits)));
  }
}

void layer_norm_row(const Node& node, StageRow& row) {
  saturate_to(hw::kLayerNormMaxInputBits, row.in);
  switch (node.stage.op) {
    case hw::StageOp::kLayerNorm:
      return norm_row(node, hw::layernorm_statistics(row.in.data(), row.in.size()), row);
    case hw::StageOp::kLayerNormApply: {
      const auto [sum, squares] = sums_of(row);
      return norm_row(node,
                      hw::layernorm_statistics_from_sums(
                          sum, squares, static_cast<std::size_t>(node.stage.imm[4])),
                      row);
    }
    default: {
      return norm_row(node, hw::rms_norm_statistics(sums_of(row).second), row);
    }
  }
}

void side_output(const hw::Stage& stage, StageRow& row) {
  switch (stage.side) {
    case hw::Reduction::kNone:
      return;
    case hw::Reduction::kRowMax:
      row.statistics = {
          static_cast<std::uint32_t>(*std::max_element(row.out.begin(), row.out.end()))};
      return;
    case hw::Reduction::kRowSum: {
      std::uint32_t sum = 0;
      for (const std::int64_t x : row.out) sum += static_cast<std::uint32_t>(x);
      row.statistics = {sum};
      return;
    }
    case hw::Reduction::kSumSquares: {
      std::uint64_t sum = 0, squares = 0;
      for (const std::int64_t x : row.out) {
        const auto input =
            static_cast<std::uint64_t>(hw::saturate(x, hw::full_range(hw::kLayerNormMaxInputBits)));
        sum += input;
        squares += input * input;
      }
      row.statistics.clear();
      for (const std::uint64_t wide : {sum, squares}) {
        row.statistics.push_back(static_cast<std::uint32_t>(wide));
        row.statistics.push_back(static_cast<std::uint32_t>(wide >> 32));
      }
      return;
    }
  }
}

void apply_stage_values(const Node& node, StageRow& row) {
  const hw::Stage& stage = node.stage;
  const std::size_t n = row.in.size();
  switch (stage.op) {
    case hw::StageOp::kAdd:
    case hw::StageOp::kSub:
      return sum_row(node, row);
    case hw::StageOp::kMul:
      return product_row(node, row);
    case hw::StageOp::kMask:
      return mask_row(node, row);
    case hw::StageOp::kRequantise:
      return requantise_row(node, row);
    case hw::StageOp::kClamp:
      for (std::size_t c = 0; c < n; ++c) row.out[c] = hw::saturate(row.in[c], range_at(stage, 0));
      return;
    case hw::StageOp::kRelu:
      for (std::size_t c = 0; c < n; ++c) row.out[c] = std::max(row.in[c], 0);
      return;
    case hw::StageOp::kGelu:
      saturate_to(16, row.in);
      return gelu_row(stage, row);
    case hw::StageOp::kSilu:
      return silu_row(stage, row);
    case hw::StageOp::kExp:
      return exp_row(stage, row);
    case hw::StageOp::kSoftmax:
      return softmax_row(node, row);
    case hw::StageOp::kDivideRowSum:
      for (std::size_t c = 0; c < n; ++c) {
        row.out[c] = hw::deferred_divide(row.in[c], row.statistics.at(0));
      }
      return;
    case hw::StageOp::kLayerNorm:
    case hw::StageOp::kLayerNormApply:
    case hw::StageOp::kRmsNormApply:
      return layer_norm_row(node, row);
    case hw::StageOp::kRope:
      return rope_row(stage, row);
    case hw::StageOp::kTranspose:
      row.out.assign(row.in.begin(), row.in.end());  // the caller writes columns as rows
      return;
  }
  throw std::invalid_argument("node '" + node.name + "': unknown stage");
}

}  // namespace

void apply_stage_row(const Node& node, StageRow& row) {
  const std::size_t n = row.in.size();
  if (node.parameters.size() != n * hw::parameter_words(node.stage)) {
    throw std::invalid_argument(
        "node '" + node.name + "': " + std::to_string(node.parameters.size()) +
        " parameters, expected " + std::to_string(n * hw::parameter_words(node.stage)));
  }
  row.out.resize(n);
  apply_stage_values(node, row);
  side_output(node.stage, row);
}

}  // namespace systole::model

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/error.h"
#include "hw/function/gelu.h"
#include "hw/postop/postop.h"
#include "tests/rtl/drive/unit_test.h"

/// Chains of what rtl/postop/systole_postop_pipeline.sv can do, and tiles for them.
namespace systole::testbench {

inline constexpr hw::StageOp kPipelineOps[] = {
    hw::StageOp::kAdd,   hw::StageOp::kSub,  hw::StageOp::kMul,  hw::StageOp::kRequantise,
    hw::StageOp::kClamp, hw::StageOp::kRelu, hw::StageOp::kGelu, hw::StageOp::kMask};

inline constexpr hw::Operand kPipelineOperands[] = {hw::Operand::kImmediate, hw::Operand::kChannel,
                                                    hw::Operand::kRow, hw::Operand::kTensor,
                                                    hw::Operand::kSaved};

/// Constants of a network's GELU, or any that hw::check_chain() accepts.
inline void set_gelu(std::mt19937_64& random, hw::Stage& stage) {
  if (random() % 2 == 0) {
    const hw::GeluConstants constants =
        hw::make_gelu_constants(std::ldexp(1.0, -3 - static_cast<int>(random() % 11)), 0.05);
    stage.imm[0] = constants.b;
    stage.imm[1] = constants.c;
    stage.imm[2] = constants.one;
    stage.imm[3] = constants.output.multiplier;
    stage.imm[4] = constants.output.shift;
    return;
  }
  const auto term = [&random] {
    return static_cast<std::int64_t>(random()) >> (23 + random() % 40);  // of 2^40 at most
  };
  for (;;) {
    stage.imm[0] = -static_cast<std::int64_t>(random() % 65537);
    stage.imm[1] = term();
    stage.imm[2] = term();
    stage.imm[3] = random_word(random) >> random() % 32;
    stage.imm[4] = static_cast<std::int64_t>(random() % 64);
    try {
      hw::check_chain({{stage}, hw::DType::kS32}, {});
      return;
    } catch (const hw::InputError&) {  // together too large
    }
  }
}

/// A random stage of this kind; `operand` must be one that it takes.
inline hw::Stage pipeline_stage(std::mt19937_64& random, hw::StageOp op, hw::Operand operand) {
  hw::Stage stage;
  stage.op = op;
  stage.operand = operand;
  const hw::StageInfo& info = hw::stage_info(op);
  if (info.rounds) stage.rounding = static_cast<hw::Rounding>(random() % 3);
  if (operand == hw::Operand::kTensor) stage.tensor = static_cast<hw::DType>(random() % 5);
  const auto set_range = [&](std::size_t i) {
    const std::int32_t a = random() % 2 == 0 ? kLowest : random_word(random);
    const std::int32_t b = random() % 2 == 0 ? kHighest : random_word(random);
    stage.imm[i] = std::min(a, b);
    stage.imm[i + 1] = std::max(a, b);
  };
  const auto set_factor = [&](std::size_t i) {
    stage.imm[i] = std::max(random_word(random), -kHighest);
    // Half of the shifts leave something of the product.
    stage.imm[i + 1] = static_cast<std::int64_t>(random() % (random() % 2 == 0 ? 64 : 20));
  };
  const auto set_value = [&](std::size_t i) {
    if (operand == hw::Operand::kImmediate) stage.imm[i] = random_word(random);
  };
  switch (op) {
    case hw::StageOp::kAdd:
    case hw::StageOp::kSub:
      if (random() % 2 == 0) {
        set_factor(0);
        set_range(2);
      }
      set_value(4);
      break;
    case hw::StageOp::kMul:
      stage.imm[0] = static_cast<std::int64_t>(random() % 64);
      set_range(1);
      set_value(3);
      break;
    case hw::StageOp::kRequantise:
      set_factor(0);
      set_range(2);
      break;
    case hw::StageOp::kClamp:
      set_range(0);
      break;
    case hw::StageOp::kMask:
      stage.imm[0] = random_word(random);
      break;
    case hw::StageOp::kGelu:
      set_range(5);
      set_gelu(random, stage);
      break;
    default:  // the others have no immediates
      break;
  }
  return stage;
}

inline hw::Stage pipeline_stage(std::mt19937_64& random) {
  const hw::StageOp op = kPipelineOps[random() % std::size(kPipelineOps)];
  for (;;) {
    const auto operand = kPipelineOperands[random() % std::size(kPipelineOperands)];
    const bool causal = op == hw::StageOp::kMask && operand == hw::Operand::kImmediate;
    if (hw::stage_info(op).takes(operand) && !causal) return pipeline_stage(random, op, operand);
  }
}

/// A chain of `stages` stages, s32 out.
inline hw::Chain pipeline_chain(std::mt19937_64& random, std::size_t stages) {
  hw::Chain chain{{}, hw::DType::kS32};
  while (chain.stages.size() < stages) chain.stages.push_back(pipeline_stage(random));
  return chain;
}

/// Random operands of a chain, and what the model makes of them.
class PipelineTile {
 public:
  PipelineTile(const hw::Chain& chain, std::size_t rows, std::size_t cols, std::mt19937_64& random)
      : chain_(chain),
        accumulator_(rows * cols),
        parameters_(hw::parameter_words(chain) * cols),
        statistics_(rows * std::max(1U, hw::statistics_words(chain))) {
    // Values of one length a tile: otherwise most would end at a limit of some stage.
    const unsigned narrow = static_cast<unsigned>(random() % 32);
    for (std::int32_t& value : accumulator_) value = random_word(random) >> narrow;
    for (std::int32_t& word : parameters_) word = random_word(random);
    for (std::uint32_t& word : statistics_) word = static_cast<std::uint32_t>(random_word(random));
    // Some elements are 0, which a mask tells from others.
    const std::vector<hw::DType> types = hw::tensor_types(chain);
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::size_t pitch = cols * hw::bytes_of(types[i]);
      tensors_.emplace_back(rows * pitch);
      for (unsigned char& byte : tensors_.back()) {
        byte = random() % 4 == 0 ? 0 : static_cast<unsigned char>(random());
      }
      operands_.tensors[i].pitch = pitch;
    }
    for (std::size_t i = 0; i < types.size(); ++i) operands_.tensors[i].data = tensors_[i].data();
    operands_.accumulator = accumulator_.data();
    operands_.accumulator_pitch = cols;
    operands_.parameters = parameters_.data();
    operands_.row_statistics = statistics_.data();
    operands_.rows = rows;
    operands_.cols = cols;
  }
  // The operands point into this object.
  PipelineTile(const PipelineTile&) = delete;
  PipelineTile& operator=(const PipelineTile&) = delete;

  [[nodiscard]] const hw::ChainOperands& operands() const { return operands_; }
  [[nodiscard]] std::size_t elements() const { return accumulator_.size(); }
  [[nodiscard]] std::vector<std::int32_t> expected() const {
    std::vector<std::int32_t> words(elements());
    hw::ChainOperands operands = operands_;
    operands.out = words.data();
    operands.out_pitch = operands.cols * sizeof(std::int32_t);
    hw::apply_chain(chain_, operands);
    return words;
  }

 private:
  hw::Chain chain_;
  std::vector<std::int32_t> accumulator_, parameters_;
  std::vector<std::uint32_t> statistics_;
  std::vector<std::vector<unsigned char>> tensors_;
  hw::ChainOperands operands_;
};

}  // namespace systole::testbench

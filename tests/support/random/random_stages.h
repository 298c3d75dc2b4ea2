#pragma once

#include <cstdint>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/number/int_exp.h"
#include "model/graph/stages.h"
#include "support/random/random_machine.h"

/// Random stages of single elements whose results still tell their inputs apart.
namespace systole::test {

/// What a stage may read besides its input: itself before the chain, and row sums.
struct StageSources {
  bool saved = false, row = false;
};

inline void set_operand(hw::Stage& stage, std::size_t value, StageSources sources, Random& random) {
  const std::uint32_t choice = between(random, 0, 3);
  if (choice == 0 && sources.saved) {
    stage.operand = hw::Operand::kTensor;
    stage.tensor = hw::DType::kS32;
  } else if (choice == 1 && sources.row) {
    stage.operand = hw::Operand::kRow;
  } else {
    stage.imm[value] = std::int64_t{between(random, 0, 4000)} - 2000;
  }
}

/// `bits`: of the result, where the stage has a say.
inline hw::Stage random_stage(Random& random, unsigned bits, StageSources sources = {}) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage;
  stage.rounding = static_cast<hw::Rounding>(between(random, 0, 2));
  switch (between(random, 0, 7)) {
    case 0:
    case 1:
      stage.op = random() % 2 == 0 ? hw::StageOp::kAdd : hw::StageOp::kSub;
      set_operand(stage, 4, sources, random);
      if (random() % 2 == 0) {
        stage.imm = {3, static_cast<std::int64_t>(between(random, 2, 4)), -30000, 30000,
                     stage.imm[4]};
      }
      return stage;
    case 2:
      stage.op = hw::StageOp::kMul;
      stage.imm = {static_cast<std::int64_t>(between(random, 0, 3)), range.lo, range.hi};
      if (sources.saved && random() % 4 == 0) {
        set_operand(stage, 3, sources, random);
        stage.imm[0] = 12;
      } else {
        stage.imm[3] = std::int64_t{between(random, 1, 12)} - 4;
      }
      return stage;
    case 3:
      return model::clamp_stage(bits);
    case 4:
      stage = {};
      stage.op = hw::StageOp::kRelu;
      return stage;
    case 5:
      return model::gelu_stage(hw::make_gelu_constants(0.0004, 0.0005), bits);
    case 6:
      stage = {};
      stage.op = hw::StageOp::kSilu;
      stage.imm = {1, 4, hw::kDefaultExpFractionBits, 1, 15, range.lo, range.hi};
      return stage;
    default:
      return model::requantise_stage({static_cast<std::int32_t>(between(random, 1, 9)), 2}, bits,
                                     stage.rounding);
  }
}

/// Up to `most` stages before one that gives s8.
inline std::vector<hw::Stage> random_stages_to_s8(Random& random, std::uint32_t most, int shift,
                                                  StageSources sources = {}) {
  std::vector<hw::Stage> stages;
  for (std::uint32_t left = between(random, 0, most); left > 0; --left) {
    stages.push_back(random_stage(random, 16, sources));
  }
  stages.push_back(random() % 3 == 0 ? model::clamp_stage(8)
                                     : model::requantise_stage({1, static_cast<std::int8_t>(shift)},
                                                               8, hw::Rounding::kHalfUp));
  return stages;
}

}  // namespace systole::test

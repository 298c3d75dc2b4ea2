#pragma once

#include <array>
#include <cstdint>

#include "hw/postop/postop.h"

/// Stages with as little text as a test deserves.
namespace systole::hw::test {

inline Stage stage(StageOp op, std::array<std::int64_t, kStageImmediates> imm = {}) {
  Stage result = default_stage(op);
  result.imm = imm;
  return result;
}

inline Stage with_operand(StageOp op, Operand operand) {
  Stage result = stage(op);
  result.operand = operand;
  return result;
}

}  // namespace systole::hw::test

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/postop/stage.h"

/// A stage as a post-op pipeline holds it: 64-bit words. Program files and the configuration port
/// of the RTL pipeline carry the same.
///
/// | word | bits | what |
/// |---|---|---|
/// | 0 | 7:0 | StageOp |
/// | 0 | 15:8 | Operand |
/// | 0 | 23:16 | Rounding |
/// | 0 | 31:24 | DType of a tensor operand, else 0 |
/// | 0 | 39:32 | Reduction; above it 0 |
/// | 1 to 8 | 63:0 | immediates, two's complement |
namespace systole::hw {

inline constexpr std::size_t kMicrocodeWords = 1 + kStageImmediates;
using Microcode = std::array<std::uint64_t, kMicrocodeWords>;

[[nodiscard]] inline Microcode encode_stage(const Stage& stage) {
  const auto field = [](auto value, unsigned byte) {
    return static_cast<std::uint64_t>(value) << (8 * byte);
  };
  const bool tensor = stage.operand == Operand::kTensor;
  Microcode words{field(stage.op, 0) | field(stage.operand, 1) | field(stage.rounding, 2) |
                  (tensor ? field(stage.tensor, 3) : 0) | field(stage.side, 4)};
  for (std::size_t i = 0; i < kStageImmediates; ++i) {
    words[1 + i] = static_cast<std::uint64_t>(stage.imm[i]);
  }
  return words;
}

/// The stage that the words hold, whatever they are: check_chain() finds values out of range.
[[nodiscard]] inline Stage decode_stage(const Microcode& words) {
  const auto field = [&words](unsigned byte) {
    return static_cast<std::uint8_t>(words[0] >> (8 * byte));
  };
  Stage stage;
  stage.op = static_cast<StageOp>(field(0));
  stage.operand = static_cast<Operand>(field(1));
  stage.rounding = static_cast<Rounding>(field(2));
  if (stage.operand == Operand::kTensor) stage.tensor = static_cast<DType>(field(3));
  stage.side = static_cast<Reduction>(field(4));
  for (std::size_t i = 0; i < kStageImmediates; ++i) {
    stage.imm[i] = static_cast<std::int64_t>(words[1 + i]);
  }
  return stage;
}

}  // namespace systole::hw

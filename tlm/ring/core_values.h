#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/number/half.h"
#include "hw/ring/engines.h"
#include "hw/ring/pass.h"

namespace systole::tlm_model::dfx {

/// Contents of a core's memories, in FP16.
struct CoreMemory {
  hw::Half* hbm = nullptr;
  const hw::Half* ddr = nullptr;  ///< tables and vectors: read only
};

/// What a core computes with, and what passes packets on: models, or RTL.
struct HalfEngines {
  std::unique_ptr<hw::MatrixLaneEngine> matrix = std::make_unique<hw::MatrixLaneModel>();
  std::unique_ptr<hw::HalfVectorEngine> vector = std::make_unique<hw::HalfVectorModel>();
  std::unique_ptr<hw::RouterEngine> router;  ///< nullptr: the model
};

/// What the instructions of one core compute: registers and memories, instruction after
/// instruction.
class CoreValues {
 public:
  CoreValues(const hw::Machine& machine, std::uint32_t register_elements, HalfEngines engines);

  /// Before the first instruction.
  void set_memory(const CoreMemory& memory) { memory_ = memory; }

  /// Any instruction but a kSync. It begins in `cycle`, which RTL's waveforms show.
  void execute(const hw::dfx::Instruction& instruction, std::uint64_t cycle);

  [[nodiscard]] hw::Half* registers() { return registers_.data(); }

 private:
  void fp16_product(const hw::dfx::Instruction& instruction);
  void int8_product(const hw::dfx::Instruction& instruction);
  void product(const hw::dfx::Instruction& instruction);
  /// Each result in the table of the instruction's function.
  void look_up(const hw::dfx::Instruction& instruction);
  void mask(const hw::dfx::Instruction& instruction);
  /// Of the row whose registers are `offset` after those of the first.
  void find_largest(const hw::dfx::Instruction& instruction, std::uint32_t offset);
  void vector(const hw::dfx::Instruction& instruction);
  void rotate(const hw::dfx::Instruction& instruction);
  void write_keys(const hw::dfx::Instruction& instruction);
  void write_values(const hw::dfx::Instruction& instruction);

  const std::uint32_t depth_, lanes_;
  const std::uint32_t int8_lanes_;
  CoreMemory memory_;
  HalfEngines engines_;
  std::vector<hw::Half> registers_;
  std::vector<hw::Half> scalars_;
};

}  // namespace systole::tlm_model::dfx

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "hw/kernel/row_kernels.h"
#include "hw/postop/microcode.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "testbench/rtl/postop/lane_unit.h"

/// Drives rtl/postop/systole_postop_pipeline.sv, or RTL with its ports.
namespace systole::testbench {

inline constexpr std::size_t kPipelineSlots = 8;
inline constexpr unsigned kSlotShiftBits = 6;
inline constexpr unsigned kSlotShiftMask = (1U << kSlotShiftBits) - 1;

/// What a stage of a chain takes from its operand stream: a word for each element of a tile.
class OperandWords {
 public:
  /// Of `stage`, whose words of the parameter block begin with number `word`, and whose tensor, if
  /// it has one, is number `tensor`. `operands` must outlive this.
  OperandWords(const hw::Stage& stage, const hw::ChainOperands& operands, std::size_t word,
               std::size_t tensor, std::size_t statistics_words) {
    const std::size_t cols = operands.cols;
    switch (stage.operand) {
      case hw::Operand::kImmediate:
        return;
      case hw::Operand::kChannel:
        words_.assign(operands.parameters + word * cols, operands.parameters + (word + 1) * cols);
        col_pitch_ = 1;
        if (hw::parameter_words(stage) == 2) shifts_ = operands.parameters + (word + 1) * cols;
        return;
      case hw::Operand::kRow:
        for (std::size_t row = 0; row < operands.rows; ++row) {
          words_.push_back(
              static_cast<std::int32_t>(operands.row_statistics[row * statistics_words]));
        }
        row_pitch_ = 1;
        return;
      case hw::Operand::kTensor: {
        const hw::TensorRows& rows = operands.tensors[tensor];
        fill(operands, [&](std::size_t row, std::int32_t* to) {
          hw::row::widen(static_cast<const unsigned char*>(rows.data) + row * rows.pitch,
                         stage.tensor, to, cols);
        });
        return;
      }
      case hw::Operand::kSaved:
        fill(operands, [&](std::size_t row, std::int32_t* to) {
          std::copy_n(operands.accumulator + row * operands.accumulator_pitch, cols, to);
        });
        return;
    }
  }

  [[nodiscard]] bool exist() const { return !words_.empty(); }
  [[nodiscard]] std::int32_t at(std::size_t row, std::size_t col) const {
    return words_[row * row_pitch_ + col * col_pitch_];
  }
  /// The second word of a channel, 0 if it has one only.
  [[nodiscard]] std::int32_t shift_at(std::size_t col) const {
    return shifts_ == nullptr ? 0 : shifts_[col];
  }

 private:
  template <typename Row>
  void fill(const hw::ChainOperands& operands, Row row) {
    words_.resize(operands.rows * operands.cols);
    for (std::size_t i = 0; i < operands.rows; ++i) row(i, words_.data() + i * operands.cols);
    row_pitch_ = operands.cols;
    col_pitch_ = 1;
  }

  std::vector<std::int32_t> words_;
  const std::int32_t* shifts_ = nullptr;
  std::size_t row_pitch_ = 0;
  std::size_t col_pitch_ = 0;
};

/// Those of all stages of a chain.
[[nodiscard]] inline std::vector<OperandWords> operand_words(const hw::Chain& chain,
                                                             const hw::ChainOperands& operands) {
  std::vector<OperandWords> all;
  std::size_t word = 0;
  std::size_t tensor = 0;
  for (const hw::Stage& stage : chain.stages) {
    all.emplace_back(stage, operands, word, tensor, hw::statistics_words(chain));
    word += hw::parameter_words(stage);
    tensor += stage.operand == hw::Operand::kTensor ? 1 : 0;
  }
  return all;
}

/// Feeds the operand streams of the slots: each offers its next beat until the slot takes it.
template <typename Dut>
class OperandFeed {
 public:
  OperandFeed(Dut& dut, const hw::Chain& chain, const hw::ChainOperands& operands,
              std::size_t lanes)
      : dut_(dut),
        words_(operand_words(chain, operands)),
        cols_(operands.cols),
        lanes_(lanes),
        vectors_((operands.cols + lanes - 1) / lanes),
        beats_(vectors_ * operands.rows) {}

  void offer(BackPressureInjector& injector) {
    for (std::size_t slot = 0; slot < words_.size(); ++slot) {
      const std::uint32_t bit = std::uint32_t{1} << slot;
      if ((offered_ & bit) != 0 || !has_beats(slot) || injector.withholds()) continue;
      drive(slot);
      offered_ |= bit;
    }
    dut_->operand_valid_i = static_cast<CData>(offered_);
  }
  [[nodiscard]] bool late() const {
    for (std::size_t slot = 0; slot < words_.size(); ++slot) {
      if ((offered_ >> slot & 1U) == 0 && has_beats(slot)) return true;
    }
    return false;
  }
  void take() {
    const std::uint32_t taken = dut_->operand_ready_o & offered_;
    for (std::size_t slot = 0; slot < words_.size(); ++slot) next_[slot] += taken >> slot & 1U;
    offered_ &= ~taken;
  }

 private:
  [[nodiscard]] bool has_beats(std::size_t slot) const {
    return words_[slot].exist() && next_[slot] < beats_;
  }
  void drive(std::size_t slot) {
    const std::size_t row = next_[slot] / vectors_;
    const std::size_t first = next_[slot] % vectors_ * lanes_;
    const std::size_t filled = std::min(lanes_, cols_ - first);
    for (std::size_t lane = 0; lane < filled; ++lane) {
      const std::size_t col = first + lane;
      const std::size_t place = slot * lanes_ + lane;
      set_lane<32>(dut_->operand_i, place, static_cast<std::uint32_t>(words_[slot].at(row, col)));
      set_field<kSlotShiftBits>(dut_->shift_i, place,
                                static_cast<unsigned>(words_[slot].shift_at(col)) & kSlotShiftMask);
    }
  }

  Dut& dut_;
  std::vector<OperandWords> words_;
  std::size_t cols_, lanes_, vectors_, beats_;
  std::array<std::size_t, kPipelineSlots> next_{};  ///< beat of each slot
  std::uint32_t offered_ = 0;                       ///< by slot
};

/// Whether a slot can do the stage.
inline bool in_a_slot(const hw::Stage& stage) {
  if (stage.side != hw::Reduction::kNone) return false;
  switch (stage.op) {
    case hw::StageOp::kAdd:
    case hw::StageOp::kSub:
    case hw::StageOp::kMul:
    case hw::StageOp::kRequantise:
    case hw::StageOp::kClamp:
    case hw::StageOp::kRelu:
    case hw::StageOp::kGelu:
      return true;
    case hw::StageOp::kMask:  // not the causal one, which depends on the place of an element
      return stage.operand != hw::Operand::kImmediate;
    default:
      return false;
  }
}

template <typename Model>
class PostopPipeline final : public ChainRtl {
 public:
  PostopPipeline(std::uint32_t lanes, const RtlOptions& options) : lanes_(lanes), dut_(options) {
    // No beats or operands from the first cycle on.
    dut_->stages_i = 0;
    dut_->code_write_i = 0;
    dut_->valid_i = 0;
    dut_->operand_valid_i = 0;
    dut_.reset();
  }

  [[nodiscard]] const char* block() const override { return "postop_pipeline"; }
  [[nodiscard]] bool serves(const hw::Chain& chain) const override {
    return chain.stages.size() <= kPipelineSlots &&
           std::all_of(chain.stages.begin(), chain.stages.end(), in_a_slot);
  }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const std::int32_t* expected, const BackPressure& pressure) override {
    dut_.show_operation(expected, contract(chain, operands.rows, operands.cols));
    configure(chain);
    return run_lanes(dut_, lanes_, copy_of(operands, out), 1, pressure, NoLane{}, NoRow{},
                     OperandFeed(dut_, chain, operands, lanes_));
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain& chain, std::size_t rows,
                                       std::size_t cols) const override {
    return hw::chain_cycles(chain, rows, cols, lanes_).total(rows);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  void configure(const hw::Chain& chain) {
    dut_->stages_i = static_cast<CData>(chain.stages.size());
    for (std::size_t slot = 0; slot < chain.stages.size(); ++slot) {
      const hw::Microcode code = hw::encode_stage(chain.stages[slot]);
      if (written_[slot] && code == code_[slot]) continue;
      for (std::size_t word = 0; word < code.size(); ++word) {
        dut_->code_write_i = 1;
        dut_->code_slot_i = static_cast<CData>(slot);
        dut_->code_word_i = static_cast<CData>(word);
        dut_->code_i = code[word];
        dut_.tick();
      }
      dut_->code_write_i = 0;
      code_[slot] = code;
      written_[slot] = true;
    }
    dut_.settle();
    if (dut_->error_o) throw std::runtime_error("postop_pipeline RTL: refuses the micro-code");
  }

  std::uint32_t lanes_;
  VerilatedDut<Model> dut_;
  std::array<hw::Microcode, kPipelineSlots> code_{};
  std::array<bool, kPipelineSlots> written_{};
};

}  // namespace systole::testbench

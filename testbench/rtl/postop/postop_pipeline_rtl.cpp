#include "testbench/rtl/postop/postop_pipeline_rtl.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "Vpostop_pipeline_16.h"
#include "Vpostop_pipeline_16_checked.h"
#include "Vpostop_pipeline_4.h"
#include "Vpostop_pipeline_4_checked.h"
#include "hw/postop/microcode.h"
#include "testbench/rtl/drive/lane_unit.h"
#include "testbench/rtl/drive/operand_streams.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

class PostopPipelineRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands,
                        std::int32_t* out, const BackPressure& pressure) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

constexpr unsigned kSlotShiftBits = 6;
constexpr unsigned kSlotShiftMask = (1U << kSlotShiftBits) - 1;

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

  template <typename Withhold>
  void offer(Withhold withhold) {
    for (std::size_t slot = 0; slot < words_.size(); ++slot) {
      const std::uint32_t bit = std::uint32_t{1} << slot;
      if ((offered_ & bit) != 0 || !has_beats(slot) || withhold()) continue;
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
  std::array<std::size_t, PostopPipelineRtl::kSlots> next_{};  ///< beat of each slot
  std::uint32_t offered_ = 0;                                  ///< by slot
};

template <typename Model>
class VerilatedPipeline final : public PostopPipelineRtl::Unit {
 public:
  VerilatedPipeline(std::uint32_t lanes, const RtlOptions& options) : lanes_(lanes), dut_(options) {
    // No beats or operands from the first cycle on.
    dut_->stages_i = 0;
    dut_->code_write_i = 0;
    dut_->valid_i = 0;
    dut_->operand_valid_i = 0;
    dut_.reset();
  }

  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const BackPressure& pressure) override {
    configure(chain);
    for (std::size_t row = 0; row < operands.rows; ++row) {
      std::copy_n(operands.accumulator + row * operands.accumulator_pitch, operands.cols,
                  out + row * operands.cols);
    }
    return run_elements(
        dut_, lanes_, out, operands.cols, operands.rows, [](std::size_t, std::size_t) {}, pressure,
        OperandFeed(dut_, chain, operands, lanes_));
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

  std::size_t lanes_;
  VerilatedDut<Model> dut_;
  std::array<hw::Microcode, PostopPipelineRtl::kSlots> code_{};
  std::array<bool, PostopPipelineRtl::kSlots> written_{};
};

using PipelineBuilds = LaneBuilds<Vpostop_pipeline_4, Vpostop_pipeline_4_checked,
                                  Vpostop_pipeline_16, Vpostop_pipeline_16_checked>;

}  // namespace

bool PostopPipelineRtl::serves(const hw::Stage& stage) {
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

bool PostopPipelineRtl::serves(const hw::Chain& chain) {
  return chain.stages.size() <= kSlots &&
         std::all_of(chain.stages.begin(), chain.stages.end(),
                     [](const hw::Stage& stage) { return serves(stage); });
}

PostopPipelineRtl::PostopPipelineRtl(std::uint32_t lanes, const RtlOptions& options)
    : unit_(make_lane_unit<Unit, VerilatedPipeline>(PipelineBuilds{}, "postop_pipeline", lanes,
                                                    options)) {}

PostopPipelineRtl::~PostopPipelineRtl() = default;

RtlCycles PostopPipelineRtl::run(const hw::Chain& chain, const hw::ChainOperands& operands,
                                 std::int32_t* out, const BackPressure& pressure) {
  return unit_->run(chain, operands, out, pressure);
}

bool PostopPipelineRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

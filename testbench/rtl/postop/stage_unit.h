#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/postop/stage_constants.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "testbench/rtl/postop/lane_unit.h"
#include "testbench/rtl/postop/softmax_pins.h"

/// The blocks that are a whole stage. Each puts the stage's constants on its pins.
namespace systole::testbench {

/// What a block is to do.
struct StageRun {
  const hw::Stage& stage;
  const hw::ChainOperands& operands;
  std::size_t lanes;
  LaneTile tile;
  const BackPressure& pressure;
};

struct RequantizerPins {
  static constexpr const char* kBlock = "requantizer";
  static constexpr hw::StageOp kOp = hw::StageOp::kRequantise;
  template <typename Dut>
  static RtlCycles run(Dut& dut, const StageRun& run) {
    const hw::row::Clamp limits = hw::limits_at(run.stage, 2);
    dut->rounding_i = static_cast<CData>(run.stage.rounding);
    dut->lo_i = static_cast<IData>(limits.lo);
    dut->hi_i = static_cast<IData>(limits.hi);
    const std::int32_t* const words = run.operands.parameters;
    return run_lanes(dut, run.lanes, run.tile, 1, run.pressure,
                     [&](std::size_t lane, std::size_t /*row*/, std::size_t column) {
                       const hw::Dyadic factor =
                           run.stage.operand == hw::Operand::kChannel
                               ? hw::channel_factor(words[column], words[run.tile.cols + column])
                               : hw::dyadic_at(run.stage, 0);
                       set_lane<32>(dut->multiplier_i, lane,
                                    static_cast<std::uint32_t>(factor.multiplier));
                       set_field<6>(dut->shift_i, lane, static_cast<unsigned>(factor.shift));
                     });
  }
};

struct DividerPins {
  static constexpr const char* kBlock = "divider";
  static constexpr hw::StageOp kOp = hw::StageOp::kDivide;
  template <typename Dut>
  static RtlCycles run(Dut& dut, const StageRun& run) {
    const hw::row::Clamp limits = hw::limits_at(run.stage, 1);
    dut->shift_i = static_cast<CData>(run.stage.imm[0]);
    dut->rounding_i = static_cast<CData>(run.stage.rounding);
    dut->lo_i = static_cast<IData>(limits.lo);
    dut->hi_i = static_cast<IData>(limits.hi);
    return run_lanes(dut, run.lanes, run.tile, 1, run.pressure,
                     [&](std::size_t lane, std::size_t row, std::size_t column) {
                       set_lane<32>(dut->divisor_i, lane,
                                    static_cast<std::uint32_t>(divisor(run, row, column)));
                     });
  }

 private:
  static std::int32_t divisor(const StageRun& run, std::size_t row, std::size_t column) {
    switch (run.stage.operand) {
      case hw::Operand::kChannel:
        return run.operands.parameters[column];
      case hw::Operand::kRow:
        return static_cast<std::int32_t>(run.operands.row_statistics[row]);
      case hw::Operand::kTensor: {
        const hw::TensorRows& tensor = run.operands.tensors[0];
        const auto* const at = static_cast<const unsigned char*>(tensor.data) + row * tensor.pitch +
                               column * hw::bytes_of(run.stage.tensor);
        std::int32_t word = 0;
        hw::row::widen(at, run.stage.tensor, &word, 1);
        return word;
      }
      case hw::Operand::kImmediate:
      case hw::Operand::kSaved:  // which the engine hands over as a tensor
        break;
    }
    return static_cast<std::int32_t>(run.stage.imm[3]);
  }
};

struct GeluPins {
  static constexpr const char* kBlock = "i_gelu";
  static constexpr hw::StageOp kOp = hw::StageOp::kGelu;
  template <typename Dut>
  static RtlCycles run(Dut& dut, const StageRun& run) {
    const hw::GeluConstants constants = hw::gelu_constants(run.stage);
    const hw::row::Clamp limits = hw::limits_at(run.stage, 5);
    dut->b_i = static_cast<IData>(pin<17>(constants.b));
    dut->c_i = pin<42>(constants.c);
    dut->one_i = pin<42>(constants.one);
    dut->multiplier_i = static_cast<IData>(constants.output.multiplier);
    dut->shift_i = static_cast<CData>(constants.output.shift);
    dut->lo_i = static_cast<IData>(limits.lo);
    dut->hi_i = static_cast<IData>(limits.hi);
    return run_lanes(dut, run.lanes, run.tile, 1, run.pressure);
  }
};

struct SoftmaxPins {
  static constexpr const char* kBlock = "softmax_unit";
  static constexpr hw::StageOp kOp = hw::StageOp::kSoftmax;
  template <typename Dut>
  static RtlCycles run(Dut& dut, const StageRun& run) {
    const hw::SoftmaxConstants constants = hw::softmax_constants(run.stage);
    const bool deferred = constants.mode == hw::SoftmaxMode::kDeferred;
    dut->kept_i = static_cast<IData>(run.operands.valid_cols);
    dut->mode_i = static_cast<CData>(constants.mode);
    set_softmax(dut, constants);
    return run_lanes(dut, run.lanes, run.tile, deferred ? 2 : 3, run.pressure, NoLane{},
                     [&](std::size_t row) {
                       if (deferred) run.operands.row_statistics[row] = dut->row_sum_o;
                     });
  }
};

struct LayerNormPins {
  static constexpr const char* kBlock = "layernorm_unit";
  static constexpr hw::StageOp kOp = hw::StageOp::kLayerNorm;
  template <typename Dut>
  static RtlCycles run(Dut& dut, const StageRun& run) {
    const hw::row::LayerNormFactors factors =
        hw::layer_norm_factors(run.stage, run.operands.parameters, run.tile.cols);
    const hw::row::Clamp limits = hw::limits_at(run.stage, 2);
    dut->fraction_bits_i = static_cast<CData>(factors.fraction_bits);
    dut->shift_i = static_cast<CData>(factors.shift);
    dut->lo_i = static_cast<IData>(limits.lo);
    dut->hi_i = static_cast<IData>(limits.hi);
    return run_lanes(dut, run.lanes, run.tile, 3, run.pressure,
                     [&](std::size_t lane, std::size_t /*row*/, std::size_t column) {
                       set_lane<32>(dut->multiplier_i, lane,
                                    static_cast<std::uint32_t>(factors.multipliers[column]));
                       set_lane<32>(dut->addend_i, lane,
                                    static_cast<std::uint32_t>(factors.biases[column]));
                     });
  }
};

template <typename Pins, typename Model>
class StageUnit final : public ChainRtl {
 public:
  StageUnit(std::uint32_t lanes, const RtlOptions& options) : lanes_(lanes), dut_(options) {}

  [[nodiscard]] const char* block() const override { return Pins::kBlock; }
  [[nodiscard]] bool serves(const hw::Chain& chain) const override {
    return chain.stages.size() == 1 && chain.stages.front().op == Pins::kOp;
  }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const std::int32_t* expected, const BackPressure& pressure) override {
    dut_.show_operation(expected, contract(chain, operands.rows, operands.cols));
    return Pins::run(dut_,
                     {chain.stages.front(), operands, lanes_, copy_of(operands, out), pressure});
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain& chain, std::size_t rows,
                                       std::size_t cols) const override {
    return hw::chain_cycles(chain, rows, cols, lanes_).total(rows);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  std::uint32_t lanes_;
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench

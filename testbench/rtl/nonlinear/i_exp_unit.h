#pragma once

#include <algorithm>
#include <vector>

#include "hw/kernel/row_kernels.h"
#include "hw/postop/stage_constants.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "testbench/rtl/postop/lane_unit.h"
#include "testbench/rtl/postop/softmax_pins.h"

namespace systole::testbench {

/// rtl/nonlinear/systole_i_exp.sv, or RTL with its ports.
template <typename Model>
class Exponential final : public IExpRtl {
 public:
  Exponential(std::uint32_t lanes, const RtlOptions& options) : lanes_(lanes), dut_(options) {}

  [[nodiscard]] const char* block() const override { return "i_exp"; }
  [[nodiscard]] bool serves(const hw::Chain& chain) const override {
    return chain.stages.size() == 1 && chain.stages.front().op == hw::StageOp::kSoftmax;
  }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const std::int32_t* /*expected*/, const BackPressure& pressure) override {
    const hw::SoftmaxConstants constants = hw::softmax_constants(chain.stages.front());
    const LaneTile tile = copy_of(operands, out);
    for (std::size_t row = 0; row < tile.rows; ++row) {
      std::int32_t* const x = out + row * tile.cols;
      const std::int64_t maximum = hw::row::maximum(x, operands.valid_cols_in(row));
      for (std::size_t i = 0; i < tile.cols; ++i) {
        const std::int64_t argument =
            hw::scale(x[i] - maximum, constants.score, hw::Rounding::kHalfUp);
        // A column that takes no part may exceed the maximum of those that do.
        x[i] = static_cast<std::int32_t>(
            std::clamp<std::int64_t>(argument, hw::kIntExpLowestArgument, 0));
      }
    }
    std::vector<std::int32_t> expected(tile.rows * tile.cols);
    std::transform(out, out + expected.size(), expected.begin(), [&](std::int32_t q) {
      return static_cast<std::int32_t>(hw::int_exp(q, constants.exp));
    });
    dut_.show_operation(expected.data(), contract(chain, tile.rows, tile.cols));
    const RtlCycles cycles = exponentials(out, tile.cols, tile.rows, constants.exp, pressure);
    for (std::size_t row = 0; row < tile.rows; ++row) {
      std::int32_t* const x = out + row * tile.cols;
      const std::size_t kept = operands.valid_cols_in(row);
      const std::uint32_t sum = hw::row::softmax_codes(x, kept, constants);
      std::fill(x + kept, x + tile.cols, 0);
      if (operands.row_statistics != nullptr && constants.mode == hw::SoftmaxMode::kDeferred) {
        operands.row_statistics[row] = sum;
      }
    }
    return cycles;
  }
  RtlCycles exponentials(std::int32_t* x, std::size_t cols, std::size_t rows,
                         const hw::IntExpConstants& constants,
                         const BackPressure& pressure) override {
    set_exponential(dut_, constants);
    return run_lanes(dut_, lanes_, {x, rows, cols}, 1, pressure);
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain& /*chain*/, std::size_t rows,
                                       std::size_t cols) const override {
    return hw::int_exp_cycles(rows, cols, lanes_);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  std::uint32_t lanes_;
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench

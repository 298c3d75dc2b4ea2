#pragma once

#include <vector>

#include "hw/kernel/row_kernels.h"
#include "hw/number/isqrt.h"
#include "hw/postop/stage_constants.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "testbench/rtl/postop/lane_unit.h"

namespace systole::testbench {

/// rtl/nonlinear/systole_i_sqrt.sv, or RTL with its ports.
template <typename Model>
class SquareRoot final : public ISqrtRtl {
 public:
  explicit SquareRoot(const RtlOptions& options) : dut_(options) {}

  [[nodiscard]] const char* block() const override { return "i_sqrt"; }
  [[nodiscard]] bool serves(const hw::Chain& chain) const override {
    return chain.stages.size() == 1 && chain.stages.front().op == hw::StageOp::kLayerNorm;
  }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const std::int32_t* /*expected*/, const BackPressure& pressure) override {
    const hw::Stage& stage = chain.stages.front();
    const LaneTile tile = copy_of(operands, out);
    hw::row::clamp(out, tile.rows * tile.cols, hw::row::kLayerNormInputs);
    std::vector<hw::LayerNormStatistics> statistics;
    std::vector<std::uint64_t> radicands;
    std::vector<std::int32_t> expected;
    for (std::size_t row = 0; row < tile.rows; ++row) {
      statistics.push_back(hw::row::layer_norm_statistics(out + row * tile.cols, tile.cols));
      radicands.push_back(statistics[row].sum_squares);
      expected.push_back(static_cast<std::int32_t>(hw::int_sqrt(radicands[row]).root));
    }
    dut_.show_operation(expected.data(), contract(chain, tile.rows, tile.cols));
    const Roots found = roots(radicands, pressure);
    const hw::row::LayerNormFactors factors =
        hw::layer_norm_factors(stage, operands.parameters, tile.cols);
    for (std::size_t row = 0; row < tile.rows; ++row) {
      const hw::LayerNormStatistics rooted =
          hw::layernorm_statistics(statistics[row].mean, statistics[row].sum_squares,
                                   {found.roots[row], statistics[row].sqrt_passes});
      hw::row::layer_norm_output(out + row * tile.cols, tile.cols, rooted, factors,
                                 hw::limits_at(stage, 2));
    }
    return found.cycles;
  }
  Roots roots(const std::vector<std::uint64_t>& numbers, const BackPressure& pressure) override {
    Roots result;
    result.roots.reserve(numbers.size());
    result.cycles = run_stream(
        dut_, numbers.size(), numbers.size(), [&](std::size_t i) { dut_->radicand_i = numbers[i]; },
        [&](std::size_t i) {
          dut_.show_beat(i, 1);
          result.roots.push_back(dut_->root_o);
        },
        pressure);
    return result;
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain& /*chain*/, std::size_t rows,
                                       std::size_t /*cols*/) const override {
    return hw::int_sqrt_cycles(rows);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench

#include "testbench/rtl/nonlinear/softmax_unit_rtl.h"

#include "Vsoftmax_unit_16.h"
#include "Vsoftmax_unit_16_checked.h"
#include "Vsoftmax_unit_4.h"
#include "Vsoftmax_unit_4_checked.h"
#include "testbench/rtl/drive/lane_unit.h"
#include "testbench/rtl/drive/row_unit.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

class SoftmaxUnitRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                        const hw::SoftmaxConstants& constants, std::uint32_t* row_sums,
                        const BackPressure& pressure, std::size_t kept) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

template <typename Model>
class VerilatedSoftmax final : public SoftmaxUnitRtl::Unit {
 public:
  VerilatedSoftmax(std::uint32_t lanes, const RtlOptions& options) : lanes_(lanes), dut_(options) {}

  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::SoftmaxConstants& constants, std::uint32_t* row_sums,
                const BackPressure& pressure, std::size_t kept) override {
    const bool deferred = constants.mode == hw::SoftmaxMode::kDeferred;
    dut_->kept_i = static_cast<IData>(kept);
    dut_->mode_i = static_cast<CData>(constants.mode);
    dut_->score_multiplier_i = static_cast<IData>(constants.score.multiplier);
    dut_->score_shift_i = static_cast<CData>(constants.score.shift);
    dut_->q_ln2_i = static_cast<SData>(constants.exp.q_ln2);
    dut_->reciprocal_i = hw::int_exp_reciprocal(constants.exp);
    dut_->b_i = static_cast<SData>(constants.exp.b);
    dut_->c_i = static_cast<IData>(constants.exp.c);
    dut_->out_multiplier_i = static_cast<IData>(constants.exp_to_code.multiplier);
    dut_->out_shift_i = static_cast<CData>(constants.exp_to_code.shift);
    dut_->out_bits_i = static_cast<CData>(constants.output_bits);
    const auto take_row = [&](std::size_t row) {
      if (deferred) row_sums[row] = dut_->row_sum_o;
    };
    return run_rows(
        dut_, lanes_, x, cols, rows, deferred ? 2 : 3, [](std::size_t, std::size_t) {}, take_row,
        pressure);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  std::size_t lanes_;
  VerilatedDut<Model> dut_;
};

using SoftmaxBuilds = LaneBuilds<Vsoftmax_unit_4, Vsoftmax_unit_4_checked, Vsoftmax_unit_16,
                                 Vsoftmax_unit_16_checked>;

}  // namespace

SoftmaxUnitRtl::SoftmaxUnitRtl(std::uint32_t lanes, const RtlOptions& options)
    : unit_(make_lane_unit<Unit, VerilatedSoftmax>(SoftmaxBuilds{}, "softmax_unit", lanes,
                                                   options)) {}

SoftmaxUnitRtl::~SoftmaxUnitRtl() = default;

RtlCycles SoftmaxUnitRtl::run(std::int32_t* x, std::size_t cols, std::size_t rows,
                              const hw::SoftmaxConstants& constants, std::uint32_t* row_sums,
                              const BackPressure& pressure, std::size_t kept) {
  return unit_->run(x, cols, rows, constants, row_sums, pressure, kept);
}

bool SoftmaxUnitRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

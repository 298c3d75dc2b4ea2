#include "testbench/rtl/nonlinear/i_exp_rtl.h"

#include "Vi_exp_16.h"
#include "Vi_exp_16_checked.h"
#include "Vi_exp_4.h"
#include "Vi_exp_4_checked.h"
#include "testbench/rtl/drive/lane_unit.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

class IExpRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                        const hw::IntExpConstants& constants, const BackPressure& pressure) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

template <typename Model>
class VerilatedExp final : public IExpRtl::Unit {
 public:
  VerilatedExp(std::uint32_t lanes, const RtlOptions& options) : lanes_(lanes), dut_(options) {}

  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::IntExpConstants& constants, const BackPressure& pressure) override {
    dut_->q_ln2_i = static_cast<SData>(constants.q_ln2);
    dut_->reciprocal_i = hw::int_exp_reciprocal(constants);
    dut_->b_i = static_cast<SData>(constants.b);
    dut_->c_i = static_cast<IData>(constants.c);
    return run_elements(
        dut_, lanes_, x, cols, rows, [](std::size_t, std::size_t) {}, pressure);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  std::size_t lanes_;
  VerilatedDut<Model> dut_;
};

using ExpBuilds = LaneBuilds<Vi_exp_4, Vi_exp_4_checked, Vi_exp_16, Vi_exp_16_checked>;

}  // namespace

IExpRtl::IExpRtl(std::uint32_t lanes, const RtlOptions& options)
    : unit_(make_lane_unit<Unit, VerilatedExp>(ExpBuilds{}, "i_exp", lanes, options)) {}

IExpRtl::~IExpRtl() = default;

RtlCycles IExpRtl::run(std::int32_t* x, std::size_t cols, std::size_t rows,
                       const hw::IntExpConstants& constants, const BackPressure& pressure) {
  return unit_->run(x, cols, rows, constants, pressure);
}

bool IExpRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

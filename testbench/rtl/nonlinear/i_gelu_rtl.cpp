#include "testbench/rtl/nonlinear/i_gelu_rtl.h"

#include "Vi_gelu_16.h"
#include "Vi_gelu_16_checked.h"
#include "Vi_gelu_4.h"
#include "Vi_gelu_4_checked.h"
#include "testbench/rtl/drive/lane_unit.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

class IGeluRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                        const hw::GeluConstants& constants, hw::row::Clamp limits,
                        const BackPressure& pressure) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

template <typename Model>
class VerilatedGelu final : public IGeluRtl::Unit {
 public:
  VerilatedGelu(std::uint32_t lanes, const RtlOptions& options) : lanes_(lanes), dut_(options) {}

  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::GeluConstants& constants, hw::row::Clamp limits,
                const BackPressure& pressure) override {
    dut_->b_i = static_cast<IData>(pin<17>(constants.b));
    dut_->c_i = pin<42>(constants.c);
    dut_->one_i = pin<42>(constants.one);
    dut_->multiplier_i = static_cast<IData>(constants.output.multiplier);
    dut_->shift_i = static_cast<CData>(constants.output.shift);
    dut_->lo_i = static_cast<IData>(limits.lo);
    dut_->hi_i = static_cast<IData>(limits.hi);
    return run_elements(
        dut_, lanes_, x, cols, rows, [](std::size_t, std::size_t) {}, pressure);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  std::size_t lanes_;
  VerilatedDut<Model> dut_;
};

using GeluBuilds = LaneBuilds<Vi_gelu_4, Vi_gelu_4_checked, Vi_gelu_16, Vi_gelu_16_checked>;

}  // namespace

IGeluRtl::IGeluRtl(std::uint32_t lanes, const RtlOptions& options)
    : unit_(make_lane_unit<Unit, VerilatedGelu>(GeluBuilds{}, "i_gelu", lanes, options)) {}

IGeluRtl::~IGeluRtl() = default;

RtlCycles IGeluRtl::run(std::int32_t* x, std::size_t cols, std::size_t rows,
                        const hw::GeluConstants& constants, hw::row::Clamp limits,
                        const BackPressure& pressure) {
  return unit_->run(x, cols, rows, constants, limits, pressure);
}

bool IGeluRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

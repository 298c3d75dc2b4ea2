#include "testbench/rtl/nonlinear/layernorm_unit_rtl.h"

#include "Vlayernorm_unit_16.h"
#include "Vlayernorm_unit_16_checked.h"
#include "Vlayernorm_unit_4.h"
#include "Vlayernorm_unit_4_checked.h"
#include "testbench/rtl/drive/lane_unit.h"
#include "testbench/rtl/drive/row_unit.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

class LayernormUnitRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                        const hw::row::LayerNormFactors& factors, hw::row::Clamp limits,
                        const BackPressure& pressure) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

constexpr std::size_t kPasses = 3;

template <typename Model>
class VerilatedLayernorm final : public LayernormUnitRtl::Unit {
 public:
  VerilatedLayernorm(std::uint32_t lanes, const RtlOptions& options)
      : lanes_(lanes), dut_(options) {}

  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::row::LayerNormFactors& factors, hw::row::Clamp limits,
                const BackPressure& pressure) override {
    dut_->fraction_bits_i = static_cast<CData>(factors.fraction_bits);
    dut_->shift_i = static_cast<CData>(factors.shift);
    dut_->lo_i = static_cast<IData>(limits.lo);
    dut_->hi_i = static_cast<IData>(limits.hi);
    const auto drive_lane = [&](std::size_t lane, std::size_t column) {
      set_lane<32>(dut_->multiplier_i, lane,
                   static_cast<std::uint32_t>(factors.multipliers[column]));
      set_lane<32>(dut_->addend_i, lane, static_cast<std::uint32_t>(factors.biases[column]));
    };
    return run_rows(
        dut_, lanes_, x, cols, rows, kPasses, drive_lane, [](std::size_t) {}, pressure);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  std::size_t lanes_;
  VerilatedDut<Model> dut_;
};

using LayernormBuilds = LaneBuilds<Vlayernorm_unit_4, Vlayernorm_unit_4_checked, Vlayernorm_unit_16,
                                   Vlayernorm_unit_16_checked>;

}  // namespace

LayernormUnitRtl::LayernormUnitRtl(std::uint32_t lanes, const RtlOptions& options)
    : unit_(make_lane_unit<Unit, VerilatedLayernorm>(LayernormBuilds{}, "layernorm_unit", lanes,
                                                     options)) {}

LayernormUnitRtl::~LayernormUnitRtl() = default;

RtlCycles LayernormUnitRtl::run(std::int32_t* x, std::size_t cols, std::size_t rows,
                                const hw::row::LayerNormFactors& factors, hw::row::Clamp limits,
                                const BackPressure& pressure) {
  return unit_->run(x, cols, rows, factors, limits, pressure);
}

bool LayernormUnitRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

#include "testbench/rtl/postop/requantizer_rtl.h"

#include "Vrequantizer_16.h"
#include "Vrequantizer_16_checked.h"
#include "Vrequantizer_4.h"
#include "Vrequantizer_4_checked.h"
#include "testbench/rtl/drive/lane_unit.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

class RequantizerRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                        const std::int32_t* multipliers, const std::int32_t* shifts,
                        hw::Rounding rounding, hw::row::Clamp limits,
                        const BackPressure& pressure) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

constexpr unsigned kShiftBits = 6;

template <typename Model>
class VerilatedRequantizer final : public RequantizerRtl::Unit {
 public:
  VerilatedRequantizer(std::uint32_t lanes, const RtlOptions& options)
      : lanes_(lanes), dut_(options) {}

  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const std::int32_t* multipliers, const std::int32_t* shifts, hw::Rounding rounding,
                hw::row::Clamp limits, const BackPressure& pressure) override {
    dut_->rounding_i = static_cast<CData>(rounding);
    dut_->lo_i = static_cast<IData>(limits.lo);
    dut_->hi_i = static_cast<IData>(limits.hi);
    const auto drive_lane = [&](std::size_t lane, std::size_t column) {
      set_lane<32>(dut_->multiplier_i, lane, static_cast<std::uint32_t>(multipliers[column]));
      set_field<kShiftBits>(dut_->shift_i, lane, static_cast<unsigned>(shifts[column]));
    };
    return run_elements(dut_, lanes_, x, cols, rows, drive_lane, pressure);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  std::size_t lanes_;
  VerilatedDut<Model> dut_;
};

using RequantizerBuilds =
    LaneBuilds<Vrequantizer_4, Vrequantizer_4_checked, Vrequantizer_16, Vrequantizer_16_checked>;

}  // namespace

RequantizerRtl::RequantizerRtl(std::uint32_t lanes, const RtlOptions& options)
    : unit_(make_lane_unit<Unit, VerilatedRequantizer>(RequantizerBuilds{}, "requantizer", lanes,
                                                       options)) {}

RequantizerRtl::~RequantizerRtl() = default;

RtlCycles RequantizerRtl::run(std::int32_t* x, std::size_t cols, std::size_t rows,
                              const std::int32_t* multipliers, const std::int32_t* shifts,
                              hw::Rounding rounding, hw::row::Clamp limits,
                              const BackPressure& pressure) {
  return unit_->run(x, cols, rows, multipliers, shifts, rounding, limits, pressure);
}

bool RequantizerRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

#include "testbench/rtl/ring/fp16_unit_rtl.h"

#include <algorithm>
#include <stdexcept>

#include "Vfp16_add_16.h"
#include "Vfp16_add_16_checked.h"
#include "Vfp16_mul_16.h"
#include "Vfp16_mul_16_checked.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

using hw::half_vector::Elements;
using hw::half_vector::Operation;

namespace {

constexpr std::size_t kWidth = Fp16UnitRtl::kLanes;

template <typename Model, bool kSubtracts>
class VerilatedUnit final : public Fp16UnitRtl {
 public:
  explicit VerilatedUnit(const RtlOptions& options) : dut_(options) {}

  RtlCycles run(Operation operation, const Elements& elements,
                const BackPressure& pressure) override {
    if constexpr (kSubtracts) dut_->subtract_i = operation == Operation::kSubtract;
    const auto filled = [&](std::size_t beat) {
      return std::min(kWidth, elements.n - beat * kWidth);
    };
    const auto mask_of = [&](std::size_t beat) { return (1U << filled(beat)) - 1; };
    const std::size_t beats = (elements.n + kWidth - 1) / kWidth;
    return run_stream(
        dut_, beats, beats,
        [&](std::size_t beat) {
          dut_->mask_i = static_cast<SData>(mask_of(beat));
          for (std::size_t lane = 0; lane < filled(beat); ++lane) {
            const std::size_t i = beat * kWidth + lane;
            set_lane<16>(dut_->a_i, lane, elements.a[i].bits);
            set_lane<16>(dut_->b_i, lane, elements.b[elements.scalar ? 0 : i].bits);
          }
        },
        [&](std::size_t beat) {
          if (dut_->mask_o != mask_of(beat)) throw std::runtime_error("RTL unit: wrong lane mask");
          dut_.show_beat(beat * kWidth, filled(beat));
          for (std::size_t lane = 0; lane < kWidth; ++lane) {
            const auto bits = static_cast<std::uint16_t>(get_lane<16>(dut_->data_o, lane));
            if (lane < filled(beat)) {
              elements.y[beat * kWidth + lane] = {bits};
            } else if (bits != 0) {
              throw std::runtime_error("RTL unit: a masked lane is not 0");
            }
          }
        },
        pressure);
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  VerilatedDut<Model> dut_;
};

}  // namespace

std::unique_ptr<Fp16UnitRtl> make_fp16_unit(Fp16Block block, const RtlOptions& options) {
  if (block == Fp16Block::kMul) {
    return make_build<Fp16UnitRtl, VerilatedUnit<Vfp16_mul_16, false>,
                      VerilatedUnit<Vfp16_mul_16_checked, false>>(options);
  }
  return make_build<Fp16UnitRtl, VerilatedUnit<Vfp16_add_16, true>,
                    VerilatedUnit<Vfp16_add_16_checked, true>>(options);
}

}  // namespace systole::testbench

#pragma once

#include <algorithm>
#include <stdexcept>

#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/fp16_unit_rtl.h"

/// Drives rtl/ring/systole_fp16_mul.sv or systole_fp16_add.sv, or RTL with their ports.
namespace systole::testbench {

inline constexpr std::size_t kHalfLanes = Fp16UnitRtl::kLanes;

template <typename Model, bool kSubtracts>
class HalfUnit final : public Fp16UnitRtl {
 public:
  explicit HalfUnit(const RtlOptions& options) : dut_(options) {}

  RtlCycles run(hw::half_vector::Operation operation, const hw::half_vector::Elements& elements,
                const BackPressure& pressure) override {
    if constexpr (kSubtracts) dut_->subtract_i = operation == hw::half_vector::Operation::kSubtract;
    const auto filled = [&](std::size_t beat) {
      return std::min(kHalfLanes, elements.n - beat * kHalfLanes);
    };
    const auto mask_of = [&](std::size_t beat) { return (1U << filled(beat)) - 1; };
    const std::size_t beats = (elements.n + kHalfLanes - 1) / kHalfLanes;
    return run_stream(
        dut_, beats, beats,
        [&](std::size_t beat) {
          dut_->mask_i = static_cast<SData>(mask_of(beat));
          for (std::size_t lane = 0; lane < filled(beat); ++lane) {
            const std::size_t i = beat * kHalfLanes + lane;
            set_lane<16>(dut_->a_i, lane, elements.a[i].bits);
            set_lane<16>(dut_->b_i, lane, elements.b[elements.scalar ? 0 : i].bits);
          }
        },
        [&](std::size_t beat) {
          if (dut_->mask_o != mask_of(beat)) throw std::runtime_error("RTL unit: wrong lane mask");
          dut_.show_beat(beat * kHalfLanes, filled(beat));
          for (std::size_t lane = 0; lane < kHalfLanes; ++lane) {
            const auto bits = static_cast<std::uint16_t>(get_lane<16>(dut_->data_o, lane));
            if (lane < filled(beat)) {
              elements.y[beat * kHalfLanes + lane] = {bits};
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

}  // namespace systole::testbench

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

class Fp16UnitRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual RtlCycles run(Operation operation, const Elements& elements,
                        const BackPressure& pressure) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

constexpr std::size_t kLanes = Fp16UnitRtl::kLanes;

template <typename Model, bool kSubtracts>
class VerilatedUnit final : public Fp16UnitRtl::Unit {
 public:
  explicit VerilatedUnit(const RtlOptions& options) : dut_(options) {}

  RtlCycles run(Operation operation, const Elements& elements,
                const BackPressure& pressure) override {
    if constexpr (kSubtracts) dut_->subtract_i = operation == Operation::kSubtract;
    const auto filled = [&](std::size_t beat) {
      return std::min(kLanes, elements.n - beat * kLanes);
    };
    const auto mask_of = [&](std::size_t beat) { return (1U << filled(beat)) - 1; };
    const std::size_t beats = (elements.n + kLanes - 1) / kLanes;
    return run_stream(
        dut_, beats, beats,
        [&](std::size_t beat) {
          dut_->mask_i = static_cast<SData>(mask_of(beat));
          for (std::size_t lane = 0; lane < filled(beat); ++lane) {
            const std::size_t i = beat * kLanes + lane;
            set_lane<16>(dut_->a_i, lane, elements.a[i].bits);
            set_lane<16>(dut_->b_i, lane, elements.b[elements.scalar ? 0 : i].bits);
          }
        },
        [&](std::size_t beat) {
          if (dut_->mask_o != mask_of(beat)) throw std::runtime_error("RTL unit: wrong lane mask");
          if (dut_.view() != nullptr) dut_.view()->set_beat(beat * kLanes, filled(beat));
          for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const auto bits = static_cast<std::uint16_t>(get_lane<16>(dut_->data_o, lane));
            if (lane < filled(beat)) {
              elements.y[beat * kLanes + lane] = {bits};
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

template <typename Fast, typename Checked, bool kSubtracts>
std::unique_ptr<Fp16UnitRtl::Unit> make_unit(const RtlOptions& options) {
  if (options.use_checked()) return std::make_unique<VerilatedUnit<Checked, kSubtracts>>(options);
  return std::make_unique<VerilatedUnit<Fast, kSubtracts>>(options);
}

}  // namespace

Fp16UnitRtl::Fp16UnitRtl(Fp16Block block, const RtlOptions& options)
    : unit_(block == Fp16Block::kMul
                ? make_unit<Vfp16_mul_16, Vfp16_mul_16_checked, false>(options)
                : make_unit<Vfp16_add_16, Vfp16_add_16_checked, true>(options)) {}

Fp16UnitRtl::~Fp16UnitRtl() = default;

RtlCycles Fp16UnitRtl::run(Operation operation, const Elements& elements,
                           const BackPressure& pressure) {
  return unit_->run(operation, elements, pressure);
}

bool Fp16UnitRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

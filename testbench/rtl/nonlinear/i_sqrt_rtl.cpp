#include "testbench/rtl/nonlinear/i_sqrt_rtl.h"

#include "Vi_sqrt_64.h"
#include "Vi_sqrt_64_checked.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

class ISqrtRtl::Unit {
 public:
  virtual ~Unit() = default;
  virtual Result run(const std::vector<std::uint64_t>& numbers, const BackPressure& pressure) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

template <typename Model>
class VerilatedSqrt final : public ISqrtRtl::Unit {
 public:
  explicit VerilatedSqrt(const RtlOptions& options) : dut_(options) {}

  ISqrtRtl::Result run(const std::vector<std::uint64_t>& numbers,
                       const BackPressure& pressure) override {
    ISqrtRtl::Result result;
    result.roots.reserve(numbers.size());
    result.cycles = run_stream(
        dut_, numbers.size(), numbers.size(), [&](std::size_t i) { dut_->radicand_i = numbers[i]; },
        [&](std::size_t i) {
          if (dut_.view() != nullptr) dut_.view()->set_beat(i, 1);
          result.roots.push_back(dut_->root_o);
        },
        pressure);
    return result;
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  VerilatedDut<Model> dut_;
};

}  // namespace

ISqrtRtl::ISqrtRtl(const RtlOptions& options) {
  if (options.use_checked()) {
    unit_ = std::make_unique<VerilatedSqrt<Vi_sqrt_64_checked>>(options);
  } else {
    unit_ = std::make_unique<VerilatedSqrt<Vi_sqrt_64>>(options);
  }
}

ISqrtRtl::~ISqrtRtl() = default;

ISqrtRtl::Result ISqrtRtl::run(const std::vector<std::uint64_t>& numbers,
                               const BackPressure& pressure) {
  return unit_->run(numbers, pressure);
}

bool ISqrtRtl::failed() const { return unit_->failed(); }

}  // namespace systole::testbench

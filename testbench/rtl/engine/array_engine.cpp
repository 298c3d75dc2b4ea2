#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/engine/own_block.h"

namespace systole::testbench {
namespace {

/// `own`: where users' RTL is; `options`: of the block.
std::unique_ptr<SystolicArrayRtl> make_array(const hw::Machine::Array& array, const RtlOptions& own,
                                             const RtlOptions& options, RtlCounts& counts) {
  const bool stationary_sums = array.dataflow == hw::Dataflow::kOutputStationary;
  if (const OwnBlock* const block = find_own(
          own, "systolic_array", stationary_sums ? "output_array" : "systolic_array",
          {{"rows", "array.rows", array.rows}, {"cols", "array.cols", array.cols}}, counts)) {
    if (array.split != hw::ArraySplit::kNone) {
      throw hw::InputError(
          "systolic_array RTL: users' RTL multiplies int8 alone, expected array.split = \"none\"");
    }
    OwnArguments arguments;
    arguments.overlap = array.overlap;
    return make_own<SystolicArrayRtl>(*block, arguments, options);
  }
  if (stationary_sums) {
    if (array.split != hw::ArraySplit::kNone) {
      throw hw::InputError(
          "systolic_array RTL: multipliers split, expected a weight-stationary array");
    }
    return make_output_array(array.rows, array.cols, array.overlap, options);
  }
  if (array.rows != array.cols) {
    throw hw::InputError("systolic_array RTL: " + std::to_string(array.rows) + " x " +
                         std::to_string(array.cols) + ", expected a square array");
  }
  if (array.split != hw::ArraySplit::kNone) {
    return make_split_array(array.rows, array.split, array.overlap, options);
  }
  return make_systolic_array(array.rows, array.overlap, options);
}

class ArrayRtlEngine final : public TimedRtl<hw::ArrayEngine> {
 public:
  ArrayRtlEngine(const hw::Machine::Array& array, std::unique_ptr<SystolicArrayRtl> rtl,
                 const RtlOptions& options, RtlCounts& counts)
      : TimedRtl(options.time), array_(array), rtl_(std::move(rtl)), check_(counts, options) {}

  [[nodiscard]] hw::ArrayCycles matmul(const hw::GemmArgs& operands, bool preloaded) override {
    const bool has_values = operands.c != nullptr;
    if (has_values) {
      expected_.resize(operands.m * operands.n);
      hw::GemmArgs model = operands;
      model.c = expected_.data();
      model.ldc = operands.n;
      for (std::size_t row = 0; operands.accumulate && row < operands.m; ++row) {
        std::copy_n(operands.c + row * operands.ldc, operands.n, model.c + row * model.ldc);
      }
      hw::gemm(model);
    }
    const hw::ArrayCycles contract = hw::array_cycles(
        array_, operands.m, operands.n,
        hw::array_steps(operands.k, {operands.a_int4, operands.b_int4}), preloaded);
    check_.operation();
    check_.begin(contract.latency);
    const SystolicArrayRtl::Cycles cycles =
        check_.run([&] { return rtl_->matmul(operands, preloaded); });
    check_.end(cycles.cycles, cycles.meets(contract));
    check_.assertions(rtl_->failed());
    for (std::size_t row = 0; has_values && row < operands.m; ++row) {
      check_.values(operands.c + row * operands.ldc, expected_.data() + row * operands.n,
                    operands.n);
    }
    return cycles.measured;
  }

 private:
  hw::Machine::Array array_;
  std::unique_ptr<SystolicArrayRtl> rtl_;
  RtlCheck check_;
  std::vector<std::int32_t> expected_;
};

}  // namespace

std::unique_ptr<hw::ArrayEngine> make_array_engine(const hw::Machine::Array& array,
                                                   const RtlOptions& options, RtlReport& report) {
  const RtlOptions its = options.for_block("systolic_array", array.cols);
  RtlCounts& counts = report["systolic_array"];
  return std::make_unique<ArrayRtlEngine>(array, make_array(array, options, its, counts), its,
                                          counts);
}

}  // namespace systole::testbench

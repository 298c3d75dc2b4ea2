#include "testbench/rtl/engine/array_engine.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "testbench/rtl/drive/model_view.h"

namespace systole::testbench {
namespace {

/// The size of a square weight-stationary array.
std::uint32_t dim_of(const hw::Machine::Array& array) {
  if (array.dataflow != hw::Dataflow::kWeightStationary) {
    throw hw::InputError(
        "systolic_array RTL: array.dataflow is \"output-stationary\", expected "
        "\"weight-stationary\"");
  }
  if (array.rows != array.cols) {
    throw hw::InputError("systolic_array RTL: " + std::to_string(array.rows) + " x " +
                         std::to_string(array.cols) + ", expected a square array");
  }
  return array.rows;
}

}  // namespace

ArrayRtlEngine::ArrayRtlEngine(const hw::Machine::Array& array, const RtlOptions& options,
                               RtlCounts& counts)
    : array_(array),
      view_(options.view),
      rtl_(dim_of(array), array.overlap, options),
      counts_(counts) {}

hw::ArrayCycles ArrayRtlEngine::matmul(const hw::GemmArgs& operands, bool preloaded) {
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
  const hw::ArrayCycles contract =
      hw::array_cycles(array_, operands.m, operands.n, operands.k, preloaded);
  if (view_) view_->begin(nullptr, contract.latency);
  const SystolicArrayRtl::Cycles cycles = rtl_.matmul(operands, preloaded);
  ++counts_.operations;
  counts_.cycles += cycles.cycles;
  if (!cycles.meets(contract)) ++counts_.mismatches;
  if (rtl_.failed()) ++counts_.mismatches;
  for (std::size_t row = 0; has_values && row < operands.m; ++row) {
    const std::int32_t* const sums = operands.c + row * operands.ldc;
    for (std::size_t col = 0; col < operands.n; ++col) {
      if (sums[col] != expected_[row * operands.n + col]) ++counts_.mismatches;
    }
  }
  return cycles.measured;
}

}  // namespace systole::testbench

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// The systolic array in RTL. The machine gets the sums and the cycles of the RTL; beside it run
/// hw::gemm() and the cycle contract, for comparison.
class ArrayRtlEngine final : public hw::ArrayEngine {
 public:
  /// Counts into `counts`, which must outlive the engine; an operation is a matmul command. Throws
  /// InputError if no RTL is built for this array: it has to be weight-stationary, and of a size
  /// that SystolicArrayRtl has.
  ArrayRtlEngine(const hw::Machine::Array& array, const RtlOptions& options, RtlCounts& counts);

  /// Without C the RTL multiplies zeros, which takes as long.
  [[nodiscard]] hw::ArrayCycles matmul(const hw::GemmArgs& operands, bool preloaded) override;

 private:
  hw::Machine::Array array_;
  std::shared_ptr<ModelView> view_;
  SystolicArrayRtl rtl_;
  RtlCounts& counts_;
  std::vector<std::int32_t> expected_;
};

}  // namespace systole::testbench

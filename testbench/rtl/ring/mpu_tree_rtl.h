#pragma once

#include <cstddef>
#include <memory>

#include "hw/machine/matrix_unit.h"
#include "hw/ring/half_gemv.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/ring/systole_mpu_tree.sv, one lane of a matrix unit. Values: hw::half_gemv; cycles:
/// hw::matrix_cycles.
class MpuTreeRtl {
 public:
  /// Built are depth 64 with up to 16 partial sums, and depth 8 with up to 4; multipliers of 6
  /// cycles and adders of 11. Throws InputError for others.
  explicit MpuTreeRtl(const hw::MatrixUnit& unit, const RtlOptions& options = {});
  ~MpuTreeRtl();

  /// Computes column `lane` of every slice of a row, as the lane does, and writes them to where
  /// hw::half_gemv() would. args.depth must be the unit's. In a waveform the model shows slice i's
  /// sum with word i. Beats that are withheld count as stalled, but the waits for sums that are on
  /// their way can make up for them where blocks are shorter than the adder is deep.
  RtlCycles run(const hw::HalfGemv& args, std::size_t row, std::size_t lane,
                const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Lane;

 private:
  std::unique_ptr<Lane> lane_;
};

}  // namespace systole::testbench

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
  virtual ~MpuTreeRtl() = default;
  /// Computes column `lane` of every slice of a row, as the lane does, and writes them to where
  /// hw::half_gemv() would. args.depth must be the unit's. In a waveform the model shows slice i's
  /// sum with word i. Beats that are withheld count as stalled, but the waits for sums that are on
  /// their way can make up for them where blocks are shorter than the adder is deep.
  virtual RtlCycles run(const hw::HalfGemv& args, std::size_t row, std::size_t lane,
                        const BackPressure& pressure = {}) = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// Built are depth 64 with up to 16 partial sums, and depth 8 with up to 4; multipliers of 6 cycles
/// and adders of 11. Throws InputError for others.
[[nodiscard]] std::unique_ptr<MpuTreeRtl> make_mpu_tree(const hw::MatrixUnit& unit,
                                                        const RtlOptions& options = {});

}  // namespace systole::testbench

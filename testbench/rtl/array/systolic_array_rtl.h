#pragma once

#include <cstdint>
#include <memory>

#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/array/systole_systolic_array.sv, weight-stationary, or rtl/array/systole_output_array.sv,
/// output-stationary, one matmul command at a time. Contract: hw/kernel/gemm.h, hw/array/array.h.
class SystolicArrayRtl {
 public:
  virtual ~SystolicArrayRtl() = default;

  /// What one command took, all of it seen at the ports of the RTL.
  struct Cycles {
    hw::ArrayCycles measured;   ///< without stalled cycles
    std::uint64_t stalled = 0;  ///< cycles in which the testbench held the array up
    std::uint64_t cycles = 0;   ///< of the clock, all in all; also those before and after it
    [[nodiscard]] bool meets(const hw::ArrayCycles& contract) const;
  };

  /// Runs the folds of one product, column tiles outside and tiles of k, or of rows, inside. After
  /// the last fold a weight-stationary array is offered a tile of zeros, as the next command's
  /// first weights, and drops it once that command could begin, which ends the interval.
  /// `preloaded`: this command's first weights are in the array before it begins; means nothing
  /// output-stationary.
  ///
  /// Operands that are null count as zeros, and a null C is not written. `pressure`: the input side
  /// withholds weights and activations, each on its own; the output side refuses results. Throws
  /// std::invalid_argument if a pitch is shorter than its row, std::runtime_error if the array
  /// stops moving or folds end in the wrong place.
  virtual Cycles matmul(const hw::GemmArgs& args, bool preloaded,
                        const BackPressure& pressure = {}) = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// Weight-stationary builds are square, `dim` 4, 8 or 16; throws InputError for others.
[[nodiscard]] std::unique_ptr<SystolicArrayRtl> make_systolic_array(std::uint32_t dim,
                                                                    hw::ArrayOverlap overlap,
                                                                    const RtlOptions& options = {});

/// rtl/array/systole_split_array.sv, whose multipliers split: `dim` 4 or 16; throws InputError for
/// others. `split`: not none.
[[nodiscard]] std::unique_ptr<SystolicArrayRtl> make_split_array(std::uint32_t dim,
                                                                 hw::ArraySplit split,
                                                                 hw::ArrayOverlap overlap,
                                                                 const RtlOptions& options = {});

/// Output-stationary builds are 3 x 5, 4 x 4 and 64 x 8; throws InputError for others.
[[nodiscard]] std::unique_ptr<SystolicArrayRtl> make_output_array(std::uint32_t rows,
                                                                  std::uint32_t cols,
                                                                  hw::ArrayOverlap overlap,
                                                                  const RtlOptions& options = {});

}  // namespace systole::testbench

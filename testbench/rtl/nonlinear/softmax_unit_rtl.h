#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hw/function/softmax.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/nonlinear/systole_softmax_unit.sv. Values: the softmax stage of hw::apply_chain; cycles:
/// hw::chain_cycles of it.
class SoftmaxUnitRtl {
 public:
  /// Throws InputError for lanes that are not built.
  explicit SoftmaxUnitRtl(std::uint32_t lanes, const RtlOptions& options = {});
  ~SoftmaxUnitRtl();

  /// Replaces `rows` rows of `cols` scores, at most 65536, by their codes. Constants as
  /// hw::check_chain accepts them, factor_bits 32. The deferred mode writes `row_sums`, one per
  /// row; the others do not touch them. `kept`: of the first row, see hw::ChainOperands.
  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::SoftmaxConstants& constants, std::uint32_t* row_sums,
                const BackPressure& pressure = {}, std::size_t kept = 0);

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Unit;

 private:
  std::unique_ptr<Unit> unit_;
};

}  // namespace systole::testbench

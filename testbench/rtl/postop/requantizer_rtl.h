#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hw/kernel/row_kernels.h"
#include "hw/number/dyadic.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/postop/systole_requantizer.sv. Values: hw::requantise; cycles: hw::chain_cycles of a
/// requantise stage.
class RequantizerRtl {
 public:
  /// Throws InputError for lanes that are not built.
  explicit RequantizerRtl(std::uint32_t lanes, const RtlOptions& options = {});
  ~RequantizerRtl();

  /// Requantises `rows` rows of `cols` words in place, column i by multipliers[i] / 2^shifts[i],
  /// shifts 0 to 63.
  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const std::int32_t* multipliers, const std::int32_t* shifts, hw::Rounding rounding,
                hw::row::Clamp limits, const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Unit;

 private:
  std::unique_ptr<Unit> unit_;
};

}  // namespace systole::testbench

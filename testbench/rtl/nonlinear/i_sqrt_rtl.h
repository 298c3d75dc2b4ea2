#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/nonlinear/systole_i_sqrt.sv of 64-bit numbers. Values: hw::int_sqrt; cycles:
/// hw::int_sqrt_cycles.
class ISqrtRtl {
 public:
  explicit ISqrtRtl(const RtlOptions& options = {});
  ~ISqrtRtl();

  struct Result {
    std::vector<std::uint32_t> roots;
    RtlCycles cycles;
  };
  Result run(const std::vector<std::uint64_t>& numbers, const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Unit;

 private:
  std::unique_ptr<Unit> unit_;
};

}  // namespace systole::testbench

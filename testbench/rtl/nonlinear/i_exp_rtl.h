#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hw/number/int_exp.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/nonlinear/systole_i_exp.sv. Values: hw::int_exp; cycles: hw::int_exp_cycles.
class IExpRtl {
 public:
  /// Throws InputError for lanes that are not built.
  explicit IExpRtl(std::uint32_t lanes, const RtlOptions& options = {});
  ~IExpRtl();

  /// Replaces `rows` rows of `cols` arguments, none of them positive, by their exponentials.
  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::IntExpConstants& constants, const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Unit;

 private:
  std::unique_ptr<Unit> unit_;
};

}  // namespace systole::testbench

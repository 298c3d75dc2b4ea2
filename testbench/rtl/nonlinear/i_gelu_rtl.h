#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hw/function/gelu.h"
#include "hw/kernel/row_kernels.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/nonlinear/systole_i_gelu.sv. Values: hw::row::plain::gelu_row; cycles: hw::chain_cycles of a
/// gelu stage.
class IGeluRtl {
 public:
  /// Throws InputError for lanes that are not built.
  explicit IGeluRtl(std::uint32_t lanes, const RtlOptions& options = {});
  ~IGeluRtl();

  /// GELU of `rows` rows of `cols` words in place; constants as hw::check_chain accepts them.
  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::GeluConstants& constants, hw::row::Clamp limits,
                const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Unit;

 private:
  std::unique_ptr<Unit> unit_;
};

}  // namespace systole::testbench

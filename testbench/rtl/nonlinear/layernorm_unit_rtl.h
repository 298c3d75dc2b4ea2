#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hw/kernel/row_kernels.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/nonlinear/systole_layernorm_unit.sv. Values: the layer_norm stage of hw::apply_chain;
/// cycles: hw::chain_cycles of it.
class LayernormUnitRtl {
 public:
  /// Throws InputError for lanes that are not built.
  explicit LayernormUnitRtl(std::uint32_t lanes, const RtlOptions& options = {});
  ~LayernormUnitRtl();

  /// Normalises `rows` rows of `cols` words, at most 65536, in place. `factors` has a multiplier
  /// and an addend per column; its other constants and the limits are as hw::check_chain accepts
  /// them.
  RtlCycles run(std::int32_t* x, std::size_t cols, std::size_t rows,
                const hw::row::LayerNormFactors& factors, hw::row::Clamp limits,
                const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Unit;

 private:
  std::unique_ptr<Unit> unit_;
};

}  // namespace systole::testbench

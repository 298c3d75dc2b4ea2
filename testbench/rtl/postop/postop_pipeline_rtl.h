#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hw/postop/postop.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/postop/systole_postop_pipeline.sv. Values: hw::apply_chain before the saturation to the
/// output type; cycles: hw::chain_cycles.
class PostopPipelineRtl {
 public:
  static constexpr std::size_t kSlots = 8;

  /// Whether a slot can do the stage, which hw::check_chain() accepts.
  [[nodiscard]] static bool serves(const hw::Stage& stage);
  /// Whether the pipeline can do all of the chain.
  [[nodiscard]] static bool serves(const hw::Chain& chain);

  /// Throws InputError for lanes that are not built.
  explicit PostopPipelineRtl(std::uint32_t lanes, const RtlOptions& options = {});
  ~PostopPipelineRtl();

  /// Sends a tile through a chain that the pipeline serves: `out` gets [rows][cols] words. Takes of
  /// `operands` what apply_chain() does, but its output. The micro-code is written before, if it is
  /// not that of the chain before; that takes no cycles of the operation.
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Unit;

 private:
  std::unique_ptr<Unit> unit_;
};

}  // namespace systole::testbench

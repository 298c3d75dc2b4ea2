#pragma once

#include <cstdint>
#include <memory>

#include "hw/ring/half_vector.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

enum class Fp16Block : std::uint8_t { kMul, kAdd };

[[nodiscard]] constexpr const char* name_of(Fp16Block block) {
  return block == Fp16Block::kMul ? "fp16_mul" : "fp16_add";
}
/// The block that does an operation.
[[nodiscard]] constexpr Fp16Block block_of(hw::half_vector::Operation operation) {
  return operation == hw::half_vector::Operation::kMultiply ? Fp16Block::kMul : Fp16Block::kAdd;
}

/// rtl/ring/systole_fp16_mul.sv or rtl/ring/systole_fp16_add.sv with 16 lanes. Values:
/// hw::half_vector::apply; cycles: hw::half_vector::cycles.
class Fp16UnitRtl {
 public:
  static constexpr std::uint32_t kLanes = 16;
  /// Cycles of the block's pipeline.
  [[nodiscard]] static constexpr std::uint32_t depth(Fp16Block block) {
    return block == Fp16Block::kMul ? 6 : 11;
  }

  virtual ~Fp16UnitRtl() = default;
  /// `operation` must be one of the block's.
  virtual RtlCycles run(hw::half_vector::Operation operation,
                        const hw::half_vector::Elements& elements,
                        const BackPressure& pressure = {}) = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

[[nodiscard]] std::unique_ptr<Fp16UnitRtl> make_fp16_unit(Fp16Block block,
                                                          const RtlOptions& options = {});

}  // namespace systole::testbench

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/machine/matrix_unit.h"
#include "hw/ring/engines.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/ring/fp16_unit_rtl.h"
#include "testbench/rtl/ring/mpu_tree_rtl.h"

/// The half precision engines in RTL. The machine gets the halves that the RTL delivers; beside it
/// run the model and the cycle contract, for comparison.
namespace systole::testbench {

/// One lane in RTL does what each lane of the matrix unit did, one after the other.
class MatrixLaneRtlEngine final : public hw::MatrixLaneEngine {
 public:
  /// Counts into `counts`, which must outlive the engine; an operation is a row of a product on one
  /// lane. Throws InputError for a unit that no RTL is built for.
  MatrixLaneRtlEngine(const hw::MatrixUnit& unit, const RtlOptions& options, RtlCounts& counts);

  /// args.depth must be the unit's.
  void gemv(const hw::HalfGemv& args) override;

 private:
  void run_lane(const hw::HalfGemv& args, std::size_t row, std::size_t lane,
                const hw::Half* expected);

  hw::MatrixUnit unit_;
  std::shared_ptr<ModelView> view_;
  MpuTreeRtl rtl_;
  RtlCounts& counts_;
  bool failed_ = false;  ///< its assertions have been counted
};

/// A multiplier or an adder of the vector unit in RTL, 16 lanes of it whatever the machine has.
class HalfVectorRtlEngine final : public hw::HalfVectorEngine {
 public:
  /// Counts into `counts`, which must outlive the engine. What is not `block`'s goes to `others`.
  HalfVectorRtlEngine(Fp16Block block, const RtlOptions& options, RtlCounts& counts,
                      std::unique_ptr<hw::HalfVectorEngine> others);

  void apply(hw::half_vector::Operation operation,
             const hw::half_vector::Elements& elements) override;

 private:
  Fp16Block block_;
  std::shared_ptr<ModelView> view_;
  Fp16UnitRtl rtl_;
  RtlCounts& counts_;
  std::unique_ptr<hw::HalfVectorEngine> others_;
  bool failed_ = false;  ///< its assertions have been counted
};

/// Which blocks run as RTL.
struct HalfBackends {
  bool mpu_tree = false;
  bool fp16_mul = false;
  bool fp16_add = false;
};

/// The engines of a core with this matrix unit: the models, or RTL that counts into `report`, which
/// must outlive them, under the block's name. Throws InputError for a unit that no RTL is built
/// for.
[[nodiscard]] std::unique_ptr<hw::MatrixLaneEngine> make_matrix_lane_engine(
    const hw::MatrixUnit& unit, HalfBackends backends, const RtlOptions& options,
    RtlReport& report);
[[nodiscard]] std::unique_ptr<hw::HalfVectorEngine> make_half_vector_engine(
    HalfBackends backends, const RtlOptions& options, RtlReport& report);

}  // namespace systole::testbench

#include "Vmpu_tree_64x16.h"
#include "Vmpu_tree_64x16_checked.h"
#include "Vmpu_tree_8x4.h"
#include "Vmpu_tree_8x4_checked.h"
#include "testbench/rtl/ring/mpu_tree_unit.h"

namespace systole::testbench {

std::unique_ptr<MpuTreeRtl> make_mpu_tree(const hw::MatrixUnit& unit, const RtlOptions& options) {
  const hw::MatrixUnit built;
  if (unit.multiply == built.multiply && unit.add == built.add) {
    if (unit.depth == 64 && unit.partial_sums <= 16) {
      return make_build<MpuTreeRtl, MpuTreeUnit<Vmpu_tree_64x16>,
                        MpuTreeUnit<Vmpu_tree_64x16_checked>>(options, unit);
    }
    if (unit.depth == 8 && unit.partial_sums <= 4) {
      return make_build<MpuTreeRtl, MpuTreeUnit<Vmpu_tree_8x4>, MpuTreeUnit<Vmpu_tree_8x4_checked>>(
          options, unit);
    }
  }
  throw hw::InputError("mpu_tree RTL: depth " + std::to_string(unit.depth) + ", " +
                       std::to_string(unit.partial_sums) + " partial sums, multiplier " +
                       std::to_string(unit.multiply) + " and adder " + std::to_string(unit.add) +
                       " cycles, expected 64 with up to 16 or 8 with up to 4, and 6 and 11 cycles");
}

}  // namespace systole::testbench

#include "Vfp16_add_16.h"
#include "Vfp16_add_16_checked.h"
#include "Vfp16_mul_16.h"
#include "Vfp16_mul_16_checked.h"
#include "testbench/rtl/ring/fp16_unit.h"

namespace systole::testbench {

std::unique_ptr<Fp16UnitRtl> make_fp16_unit(Fp16Block block, const RtlOptions& options) {
  if (block == Fp16Block::kMul) {
    return make_build<Fp16UnitRtl, HalfUnit<Vfp16_mul_16, false>,
                      HalfUnit<Vfp16_mul_16_checked, false>>(options);
  }
  return make_build<Fp16UnitRtl, HalfUnit<Vfp16_add_16, true>,
                    HalfUnit<Vfp16_add_16_checked, true>>(options);
}

}  // namespace systole::testbench

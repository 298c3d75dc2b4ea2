#include "Vi_sqrt_64.h"
#include "Vi_sqrt_64_checked.h"
#include "testbench/rtl/nonlinear/i_sqrt_unit.h"

namespace systole::testbench {

std::unique_ptr<ISqrtRtl> make_i_sqrt(const RtlOptions& options) {
  return make_build<ISqrtRtl, SquareRoot<Vi_sqrt_64>, SquareRoot<Vi_sqrt_64_checked>>(options);
}

}  // namespace systole::testbench

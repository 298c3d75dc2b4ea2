#include "Vi_exp_16.h"
#include "Vi_exp_16_checked.h"
#include "Vi_exp_4.h"
#include "Vi_exp_4_checked.h"
#include "testbench/rtl/nonlinear/i_exp_unit.h"

namespace systole::testbench {

std::unique_ptr<IExpRtl> make_i_exp(std::uint32_t lanes, const RtlOptions& options) {
  return make_lane_unit<IExpRtl, Exponential, Vi_exp_4, Vi_exp_4_checked, Vi_exp_16,
                        Vi_exp_16_checked>("i_exp", lanes, options);
}

}  // namespace systole::testbench

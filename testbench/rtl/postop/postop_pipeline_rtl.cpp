#include "Vpostop_pipeline_16.h"
#include "Vpostop_pipeline_16_checked.h"
#include "Vpostop_pipeline_4.h"
#include "Vpostop_pipeline_4_checked.h"
#include "testbench/rtl/postop/postop_pipeline_unit.h"

namespace systole::testbench {

std::unique_ptr<ChainRtl> make_postop_pipeline(std::uint32_t lanes, const RtlOptions& options) {
  return make_lane_unit<ChainRtl, PostopPipeline, Vpostop_pipeline_4, Vpostop_pipeline_4_checked,
                        Vpostop_pipeline_16, Vpostop_pipeline_16_checked>("postop_pipeline", lanes,
                                                                          options);
}

}  // namespace systole::testbench

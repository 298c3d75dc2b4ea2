#include "Vhead_mix_line_8.h"
#include "Vhead_mix_line_8_checked.h"
#include "testbench/rtl/attention/head_mix_line_unit.h"

namespace systole::testbench {

std::unique_ptr<HeadMixLineRtl> make_head_mix_line(std::uint32_t macs, const RtlOptions& options) {
  require_macs("head_mix_line", macs);
  return make_build<HeadMixLineRtl, HeadMixUnit<Vhead_mix_line_8>,
                    HeadMixUnit<Vhead_mix_line_8_checked>>(options);
}

}  // namespace systole::testbench

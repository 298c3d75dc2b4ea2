#include "Vdenser_line_8.h"
#include "Vdenser_line_8_checked.h"
#include "Vsparser_line_8.h"
#include "Vsparser_line_8_checked.h"
#include "testbench/rtl/attention/attention_line_unit.h"

namespace systole::testbench {

std::unique_ptr<AttentionLineRtl> make_sparser_line(std::uint32_t macs, const RtlOptions& options) {
  require_macs("sparser_line", macs);
  return make_build<AttentionLineRtl, LineUnit<Vsparser_line_8, true>,
                    LineUnit<Vsparser_line_8_checked, true>>(options);
}

std::unique_ptr<AttentionLineRtl> make_denser_line(std::uint32_t macs, const RtlOptions& options) {
  require_macs("denser_line", macs);
  return make_build<AttentionLineRtl, LineUnit<Vdenser_line_8, false>,
                    LineUnit<Vdenser_line_8_checked, false>>(options);
}

}  // namespace systole::testbench

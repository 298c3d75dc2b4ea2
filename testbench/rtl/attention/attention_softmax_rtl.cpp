#include "Vattention_softmax_8_checked.h"
#include "base/error.h"
#include "testbench/rtl/attention/attention_softmax_unit.h"

namespace systole::testbench {

std::unique_ptr<AttentionSoftmaxRtl> make_attention_softmax(std::uint32_t lanes,
                                                            const RtlOptions& options) {
  if (lanes != kSoftmaxLanes) {
    throw hw::InputError("attention_softmax RTL: " + std::to_string(lanes) + " lanes, expected " +
                         std::to_string(kSoftmaxLanes));
  }
  return std::make_unique<AttentionSoftmaxUnit<Vattention_softmax_8_checked>>(lanes, options);
}

}  // namespace systole::testbench

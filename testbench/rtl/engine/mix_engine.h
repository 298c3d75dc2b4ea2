#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/attention/ae_decoder_rtl.h"
#include "testbench/rtl/drive/rtl_counts.h"

namespace systole::testbench {

/// The auto-encoder's lines in RTL: one does what each line of the machine did. The machine gets
/// the bytes that the RTL delivers; beside it run the model and the cycle contract, for comparison.
class MixRtlEngine final : public hw::MixEngine {
 public:
  /// Counts into `counts`, which must outlive the engine; an operation is a token. Throws
  /// InputError for a machine without attention engines, or with lines that no RTL is built for.
  MixRtlEngine(const hw::Machine::Attention& attention, const RtlOptions& options,
               RtlCounts& counts);

  /// Throws InputError for more heads than the RTL has registers for.
  void mix(const hw::HeadMix& mix, const std::int8_t* in, std::size_t features,
           std::int8_t* out) override;

 private:
  std::uint32_t macs_;
  std::shared_ptr<ModelView> view_;
  AeDecoderRtl rtl_;
  RtlCounts& counts_;
  bool failed_ = false;  ///< its assertions have been counted
};

}  // namespace systole::testbench

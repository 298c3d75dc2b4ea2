#include <vector>

#include "testbench/rtl/attention/ae_decoder_rtl.h"
#include "testbench/rtl/attention/line_work.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/engine/engines.h"

namespace systole::testbench {
namespace {

class MixRtlEngine final : public hw::MixEngine {
 public:
  MixRtlEngine(std::uint32_t macs, const RtlOptions& options, RtlCounts& counts)
      : macs_(macs), rtl_(make_ae_decoder(macs, options)), check_(counts, options) {}

  void mix(const hw::HeadMix& mix, const std::int8_t* in, std::size_t features,
           std::int8_t* out) override {
    std::vector<std::int8_t> expected(mix.out_heads * features);
    hw::mix_heads(mix, in, features, expected.data());
    check_.operation();
    // The first group's beats come in before the line can work.
    check_.begin(hw::MixLines(1, macs_).take(mix, features, mix.in_heads).done);
    check_.end(rtl_->mix(mix, in, features, 1, out, expected.data()).total.cycles);
    check_.values(out, expected.data(), expected.size());
    check_.assertions(rtl_->failed());
  }

 private:
  std::uint32_t macs_;
  std::unique_ptr<AeDecoderRtl> rtl_;
  RtlCheck check_;
};

}  // namespace

std::unique_ptr<hw::MixEngine> make_mix_engine(const hw::Machine::Attention& attention,
                                               const RtlOptions& options, RtlReport& report) {
  require_lines("ae_decoder", attention);
  return std::make_unique<MixRtlEngine>(attention.macs_per_line,
                                        options.for_block("ae_decoder", attention.macs_per_line),
                                        report["ae_decoder"]);
}

}  // namespace systole::testbench

#include <memory>
#include <utility>
#include <vector>

#include "testbench/rtl/attention/head_mix_line_rtl.h"
#include "testbench/rtl/attention/line_work.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/engine/own_block.h"

namespace systole::testbench {
namespace {

class MixRtlEngine final : public TimedRtl<hw::HeadMixEngine> {
 public:
  MixRtlEngine(std::uint32_t macs, std::unique_ptr<HeadMixLineRtl> rtl, const RtlOptions& options,
               RtlCounts& counts)
      : TimedRtl(options.time), macs_(macs), rtl_(std::move(rtl)), check_(counts, options) {}

  void mix(const hw::HeadMix& mix, const std::int8_t* in, std::size_t features,
           std::int8_t* out) override {
    std::vector<std::int8_t> expected(mix.out_heads * features);
    hw::mix_heads(mix, in, features, expected.data());
    check_.operation();
    // The first group's beats come in before the line can work.
    check_.begin(hw::HeadMixLines(1, macs_).take(mix, features, mix.in_heads).done);
    check_.end(check_.run([&] { return rtl_->mix(mix, in, features, 1, out, expected.data()); })
                   .total.cycles);
    check_.values(out, expected.data(), expected.size());
    check_.assertions(rtl_->failed());
  }

 private:
  std::uint32_t macs_;
  std::unique_ptr<HeadMixLineRtl> rtl_;
  RtlCheck check_;
};

}  // namespace

std::unique_ptr<hw::HeadMixEngine> make_mix_engine(const hw::Machine::Attention& attention,
                                                   const RtlOptions& options, RtlReport& report) {
  require_lines("head_mix_line", attention);
  const std::uint32_t macs = attention.macs_per_line;
  const RtlOptions its = options.for_block("head_mix_line", macs);
  RtlCounts& counts = report["head_mix_line"];
  const OwnBlock* const own = find_own(options, "head_mix_line", "head_mix_line",
                                       {{"macs", "attention.macs_per_line", macs}}, counts);
  return std::make_unique<MixRtlEngine>(
      macs,
      own == nullptr ? make_head_mix_line(macs, its) : make_own<HeadMixLineRtl>(*own, {}, its), its,
      counts);
}

}  // namespace systole::testbench

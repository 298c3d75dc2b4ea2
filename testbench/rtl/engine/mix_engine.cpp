#include "testbench/rtl/engine/mix_engine.h"

#include <utility>

#include "testbench/rtl/drive/mac_line.h"
#include "testbench/rtl/drive/model_view.h"

namespace systole::testbench {
namespace {

std::uint32_t macs_of(const hw::Machine::Attention& attention) {
  require_lines("ae_decoder", attention);
  return attention.macs_per_line;
}

}  // namespace

MixRtlEngine::MixRtlEngine(const hw::Machine::Attention& attention, const RtlOptions& options,
                           RtlCounts& counts)
    : macs_(macs_of(attention)), view_(options.view), rtl_(macs_, options), counts_(counts) {}

void MixRtlEngine::mix(const hw::HeadMix& mix, const std::int8_t* in, std::size_t features,
                       std::int8_t* out) {
  std::vector<std::int8_t> expected(mix.out_heads * features);
  hw::mix_heads(mix, in, features, expected.data());
  // The first group's beats come in before the line can work.
  const std::uint64_t contract = hw::MixLines(1, macs_).take(mix, features, mix.in_heads).done;
  if (view_) view_->begin(nullptr, contract);
  const RtlCycles cycles = rtl_.mix(mix, in, features, 1, out, expected.data()).total;
  ++counts_.operations;
  counts_.cycles += cycles.cycles;
  if (cycles.cycles != contract) ++counts_.mismatches;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (out[i] != expected[i]) ++counts_.mismatches;
  }
  if (rtl_.failed() && !std::exchange(failed_, true)) ++counts_.mismatches;
}

}  // namespace systole::testbench

#include "testbench/rtl/engine/router_engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "testbench/rtl/drive/model_view.h"

namespace systole::testbench {
namespace {

/// Halves that are not those of the model, on either side.
std::uint64_t differing_halves(const std::vector<hw::Half>& values,
                               const std::vector<hw::Half>& expected) {
  const auto& [shorter, longer] = std::minmax(
      values, expected, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::uint64_t count = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) count += shorter[i] == longer[i] ? 0 : 1;
  return count;
}

}  // namespace

RouterRtlEngine::RouterRtlEngine(const RtlOptions& options, RtlCounts& counts)
    : view_(options.view), rtl_(options), counts_(counts) {}

hw::RoutedPacket RouterRtlEngine::route(const std::vector<hw::Half>& values, std::uint32_t core,
                                        std::uint32_t hops, bool to_right) {
  if (hw::flits_of(values.size()) > hw::kMaxPacketFlits) {
    throw hw::InputError("ring_router RTL: a packet of " + std::to_string(values.size()) +
                         " halves, expected at most " +
                         std::to_string(hw::kMaxPacketFlits * hw::kFlitHalves));
  }
  const hw::RoutedPacket expected = model_.route(values, core, hops, to_right);
  // Room for whatever flit the RTL may deliver; behind the packet's end it should be 0.
  std::vector<std::int32_t> words(view_ ? hw::kMaxPacketFlits * hw::kFlitHalves : 0);
  if (view_) {
    std::transform(values.begin(), values.end(), words.begin(),
                   [](hw::Half half) { return std::int32_t{half.bits}; });
    view_->begin(words.data(), expected.cycles);
  }
  hw::RoutedPacket routed = rtl_.route(values, core, hops, to_right).packet;
  ++counts_.operations;
  counts_.cycles += routed.cycles;
  counts_.mismatches += differing_halves(routed.delivered, expected.delivered) +
                        differing_halves(routed.forwarded, expected.forwarded) +
                        (routed.hops != expected.hops ? 1 : 0) +
                        (routed.cycles != expected.cycles ? 1 : 0);
  if (rtl_.failed() && !std::exchange(failed_, true)) ++counts_.mismatches;
  return routed;
}

std::unique_ptr<hw::RouterEngine> make_router_engine(bool rtl, std::uint64_t router_cycles,
                                                     const RtlOptions& options, RtlReport& report) {
  if (!rtl) return std::make_unique<hw::RouterModel>(router_cycles);
  if (router_cycles != RingRouterRtl::kCycles) {
    throw hw::InputError("ring_router RTL: ring.router_cycles " + std::to_string(router_cycles) +
                         ", expected " + std::to_string(RingRouterRtl::kCycles));
  }
  return std::make_unique<RouterRtlEngine>(options.for_block("ring_router", hw::kFlitHalves),
                                           report["ring_router"]);
}

}  // namespace systole::testbench

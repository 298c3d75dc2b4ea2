#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/ring/router_contract.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/engine/own_block.h"
#include "testbench/rtl/ring/ring_router_rtl.h"

namespace systole::testbench {
namespace {

class RouterRtlEngine final : public TimedRtl<hw::RouterEngine> {
 public:
  RouterRtlEngine(std::unique_ptr<RingRouterRtl> rtl, const RtlOptions& options, RtlCounts& counts)
      : TimedRtl(options.time),
        rtl_(std::move(rtl)),
        check_(counts, options),
        words_(options.view ? hw::kMaxPacketFlits * hw::kFlitHalves : 0) {}

  hw::RoutedPacket route(const std::vector<hw::Half>& values, std::uint32_t core,
                         std::uint32_t hops, bool to_right) override {
    if (hw::flits_of(values.size()) > hw::kMaxPacketFlits) {
      throw hw::InputError("ring_router RTL: a packet of " + std::to_string(values.size()) +
                           " halves, expected at most " +
                           std::to_string(hw::kMaxPacketFlits * hw::kFlitHalves));
    }
    const hw::RoutedPacket expected = model_.route(values, core, hops, to_right);
    std::fill(words_.begin(), words_.end(), 0);
    for (std::size_t i = 0; !words_.empty() && i < values.size(); ++i) words_[i] = values[i].bits;
    check_.operation();
    check_.begin(expected.cycles, words_.data());
    hw::RoutedPacket routed =
        check_.run([&] { return rtl_->route(values, core, hops, to_right); }).packet;
    check_.end(routed.cycles);
    compare(routed.delivered, expected.delivered);
    compare(routed.forwarded, expected.forwarded);
    check_.mismatch(routed.hops != expected.hops);
    check_.assertions(rtl_->failed());
    return routed;
  }

 private:
  /// Counts halves that differ, and those that only one side has.
  void compare(const std::vector<hw::Half>& found, const std::vector<hw::Half>& expected) {
    const std::size_t common = std::min(found.size(), expected.size());
    check_.values(found.data(), expected.data(), common);
    for (std::size_t i = common; i < std::max(found.size(), expected.size()); ++i) {
      check_.mismatch(true);
    }
  }

  std::unique_ptr<RingRouterRtl> rtl_;
  hw::RouterModel model_{RingRouterRtl::kCycles};
  RtlCheck check_;
  /// The packet in the waveform, with room for whatever flit the RTL may deliver.
  std::vector<std::int32_t> words_;
};

}  // namespace

std::unique_ptr<hw::RouterEngine> make_router_engine(bool rtl, std::uint64_t router_cycles,
                                                     const RtlOptions& options, RtlReport& report) {
  if (!rtl) return std::make_unique<hw::RouterModel>(router_cycles);
  if (router_cycles != RingRouterRtl::kCycles) {
    throw hw::InputError("ring_router RTL: ring.router_cycles " + std::to_string(router_cycles) +
                         ", expected " + std::to_string(RingRouterRtl::kCycles));
  }
  const RtlOptions its = options.for_block("ring_router", hw::kFlitHalves);
  RtlCounts& counts = report["ring_router"];
  const OwnBlock* const own = find_own(options, "ring_router", "ring_router", {}, counts);
  return std::make_unique<RouterRtlEngine>(
      own == nullptr ? make_ring_router(its) : make_own<RingRouterRtl>(*own, {}, its), its, counts);
}

}  // namespace systole::testbench

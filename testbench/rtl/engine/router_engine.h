#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/ring/engines.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/ring/ring_router_rtl.h"

/// The router in RTL. The machine gets the packets that the RTL delivers; beside it run the model
/// and the cycle contract, for comparison.
namespace systole::testbench {

class RouterRtlEngine final : public hw::RouterEngine {
 public:
  /// Counts into `counts`, which must outlive the engine; an operation is a packet.
  RouterRtlEngine(const RtlOptions& options, RtlCounts& counts);

  /// Throws InputError for more than hw::kMaxPacketFlits flits.
  hw::RoutedPacket route(const std::vector<hw::Half>& values, std::uint32_t core,
                         std::uint32_t hops, bool to_right) override;

 private:
  std::shared_ptr<ModelView> view_;
  RingRouterRtl rtl_;
  hw::RouterModel model_{RingRouterRtl::kCycles};
  RtlCounts& counts_;
  bool failed_ = false;  ///< its assertions have been counted
};

/// A core's router: the model, or RTL that counts into `report`, which must outlive it, under
/// "ring_router". Throws InputError for RTL with other `router_cycles` than it is built with.
[[nodiscard]] std::unique_ptr<hw::RouterEngine> make_router_engine(bool rtl,
                                                                   std::uint64_t router_cycles,
                                                                   const RtlOptions& options,
                                                                   RtlReport& report);

}  // namespace systole::testbench

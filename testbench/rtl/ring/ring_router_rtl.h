#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/ring/engines.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/ring/systole_ring_router.sv with packets of up to hw::kMaxPacketFlits flits. Values:
/// hw::RouterModel; cycles: hw/ring/router_contract.h.
class RingRouterRtl {
 public:
  static constexpr std::uint64_t kCycles = 4;     ///< through the router
  static constexpr std::uint32_t kMaxCores = 64;  ///< numbers of cores, and of hops, are below

  /// What became of a packet; packet.cycles is the contract's plus `stalled`.
  struct Run {
    hw::RoutedPacket packet;
    std::uint64_t stalled = 0;  ///< cycles in which the testbench held the router up
  };

  explicit RingRouterRtl(const RtlOptions& options = {});
  ~RingRouterRtl();

  /// One packet through the idle router, as hw::RouterEngine says. Throws std::invalid_argument for
  /// what does not fit. In a waveform the model shows the halves of the flit that is delivered.
  [[nodiscard]] Run route(const std::vector<hw::Half>& values, std::uint32_t core,
                          std::uint32_t hops, bool to_right, const BackPressure& pressure = {});

  [[nodiscard]] bool failed() const;  ///< an assertion has fired

  class Router;

 private:
  std::unique_ptr<Router> router_;
};

}  // namespace systole::testbench

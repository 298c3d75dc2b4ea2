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

  virtual ~RingRouterRtl() = default;
  /// One packet through the idle router, as hw::RouterEngine says. Throws std::invalid_argument for
  /// what does not fit. In a waveform the model shows the halves of the flit that is delivered.
  [[nodiscard]] virtual Run route(const std::vector<hw::Half>& values, std::uint32_t core,
                                  std::uint32_t hops, bool to_right,
                                  const BackPressure& pressure = {}) = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

[[nodiscard]] std::unique_ptr<RingRouterRtl> make_ring_router(const RtlOptions& options = {});

}  // namespace systole::testbench

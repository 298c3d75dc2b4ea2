#pragma once

#include <algorithm>
#include <cstdint>

/// Cycle contract of a core's router (DFX, MICRO 2022), for vectors that are gathered: parts that
/// are summed round the ring have the matrix unit's adder in addition, and no RTL.
namespace systole::hw {

inline constexpr std::uint32_t kFlitHalves = 32;  ///< of 512 bits, what a link takes in a cycle
inline constexpr std::uint32_t kMaxPacketFlits = 256;  ///< of a packet that RTL takes

/// Flits of a packet.
constexpr std::uint64_t flits_of(std::uint64_t halves) {
  return (halves + kFlitHalves - 1) / kFlitHalves;
}

/// Cycle in which a flit that arrives in cycle `arrival` is written to the core's registers; for
/// the packet's last flit, which completes the packet.
constexpr std::uint64_t delivery_cycle(std::uint64_t arrival, std::uint64_t router_cycles) {
  return arrival + router_cycles;
}

/// Cycle in which a packet that has hops left, and whose last flit arrives in cycle `last_arrival`,
/// is on the next link with its first flit, if that is free from cycle `link_free` on. The others
/// follow, one in every cycle in which the link is ready.
constexpr std::uint64_t forward_cycle(std::uint64_t last_arrival, std::uint64_t link_free,
                                      std::uint64_t router_cycles) {
  return std::max(last_arrival + router_cycles, link_free);
}

/// From a packet's first flit to the last one that leaves a router that is otherwise idle, for the
/// core's registers or, with `hops` (this one included) above 1, for the next link. `flits` is at
/// least 1.
constexpr std::uint64_t route_cycles(std::uint64_t flits, std::uint32_t hops,
                                     std::uint64_t router_cycles) {
  const std::uint64_t last_arrival = flits - 1;
  const std::uint64_t last = hops > 1 ? forward_cycle(last_arrival, 0, router_cycles) + flits - 1
                                      : delivery_cycle(last_arrival, router_cycles);
  return last + 1;
}

}  // namespace systole::hw

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/accounting.h"
#include "base/calendar.h"
#include "hw/machine/machine.h"
#include "hw/noc/mesh_nodes.h"

namespace systole::hw {

/// Sees a link taken by a packet's head in cycle `begin`, until the cycle `end` after its tail.
class MeshWatch {
 public:
  virtual ~MeshWatch() = default;
  virtual void take(std::size_t link, std::uint64_t begin, std::uint64_t end) = 0;
};

/// The timing of a mesh of routers: packets, XY routing, a calendar for each directed link. In
/// cycles of the mesh.
///
/// A packet is noc.header_bytes and its data. It passes the link from its sender to the sender's
/// router, the links of its way, and the link from the last router to its receiver. Switching is
/// virtual cut-through: the head passes on as soon as the next link is free for the whole packet,
/// noc.hop_cycles after it entered the last one; a packet that has to wait does so in its router,
/// which has room for it, so it holds no other link. A link is held from head to tail: as long as
/// the packet takes on the narrowest link that it has passed. On an empty mesh, over h links
/// between routers, the last byte arrives
///
///     (h + 1) hop_cycles + max over its links of ceil((header_bytes + bytes) / width)
///
/// cycles after its head began, which is the latency without contention of W. J. Dally and B.
/// Towles, Principles and Practices of Interconnection Networks (2004), ch. 3: routers times their
/// delay, and length over bandwidth. A link gives way in the order of the calls, with the first gap
/// that is long enough. Requests and answers do not wait for each other's buffers.
class Mesh {
 public:
  using Endpoint = std::uint32_t;

  /// Links between routers are noc.link_bytes wide, those to what is at a node `local_bytes`.
  Mesh(const Machine::Noc& noc, std::uint32_t local_bytes);

  /// Something at a node, with a link to its router and one back. Throws std::invalid_argument if
  /// the mesh has no such node.
  Endpoint attach(std::uint32_t node, std::string name);

  /// Nothing will be sent before cycle `now` any more.
  void retire(std::uint64_t now) noexcept { now_ = now; }

  struct Passage {
    std::uint64_t end = 0;        ///< the cycle after that in which the tail has arrived
    std::uint64_t waited = 0;     ///< cycles that it waited for links
    std::uint64_t byte_hops = 0;  ///< its bytes, header included, times links between routers
  };
  /// Sends a packet with `bytes` of data, whose head is ready in cycle `earliest`.
  Passage send(Endpoint from, Endpoint to, std::uint32_t bytes, std::uint64_t earliest);

  /// All links: first those between routers, by MeshLink::index(), among them places at the edge
  /// without a link, then those from and to each endpoint.
  struct Link {
    std::string name;  ///< empty: no link is here
    Calendar calendar{"cycles"};
    std::uint64_t packets = 0, bytes = 0;
    std::uint64_t wait = 0;  ///< cycles between wanting and getting it
  };
  [[nodiscard]] const std::vector<Link>& links() const noexcept { return links_; }

  /// Reports each use of a link, counted or not; it outlives the run.
  void watch(MeshWatch& watch) noexcept { watch_ = &watch; }

  /// From cycle `now` on, time counts in the accounts or it does not.
  void set_counting(bool on, std::uint64_t now);
  /// Ends the accounts at cycle `total` or at the end of the last reservation. Returns which.
  std::uint64_t finish(std::uint64_t total);

  /// A part for each link.
  [[nodiscard]] BlockReport report(std::string name) const;

 private:
  struct Head;
  void pass(std::size_t link, std::uint32_t bytes, std::uint64_t length, Head& head);

  Machine::Noc noc_;
  std::uint32_t local_bytes_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> nodes_;  ///< by endpoint
  std::size_t first_local_;           ///< of `links_`
  std::uint64_t now_ = 0, byte_hops_ = 0, packets_ = 0;
  MeshWatch* watch_ = nullptr;
};

}  // namespace systole::hw

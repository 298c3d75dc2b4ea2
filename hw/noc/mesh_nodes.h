#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"

/// What is at which node of a machine's mesh, and the ways between nodes. Node n is in column
/// n % noc.columns of row n / noc.columns. Cores are at nodes that they name, channels of the DRAM
/// in the last row, the hosts at node 0.
namespace systole::hw {

[[nodiscard]] inline bool has_mesh(const Machine& machine) { return machine.noc.columns != 0; }
[[nodiscard]] inline std::uint32_t mesh_nodes(const Machine::Noc& noc) {
  return noc.columns * noc.rows;
}

/// The node that hosts are at.
inline constexpr std::uint32_t kHostNode = 0;

/// The node of a channel of the DRAM, or of the part of the L2 cache before it: channels are spread
/// evenly over the last row, in their order. Where there are more channels than columns, several
/// are at one node.
[[nodiscard]] std::uint32_t channel_node(const Machine& machine, std::uint32_t channel);

/// Where a link of a router leads to.
enum class MeshSide : std::uint8_t { kEast, kWest, kSouth, kNorth };
inline constexpr std::uint32_t kMeshSides = 4;
/// "east", ...
[[nodiscard]] const char* name_of(MeshSide side);

/// A link, from the router of `node` to its neighbour.
struct MeshLink {
  std::uint32_t node = 0;
  MeshSide side = MeshSide::kEast;
  [[nodiscard]] std::uint32_t index() const noexcept {
    return node * kMeshSides + static_cast<std::uint32_t>(side);
  }
};
/// "link_0_1_east": of the router in column 0 of row 1.
[[nodiscard]] std::string name_of(const Machine::Noc& noc, const MeshLink& link);

/// Calls `visit(link)` for each link from node to node, first along the row, then along the column
/// (XY routing: no circle of packets that wait for each other).
template <typename Visit>
void for_each_link(const Machine::Noc& noc, std::uint32_t from, std::uint32_t to, Visit visit) {
  const std::uint32_t columns = noc.columns;
  const std::uint32_t column = to % columns, row = to / columns;
  while (from % columns < column) visit(MeshLink{from++, MeshSide::kEast});
  while (from % columns > column) visit(MeshLink{from--, MeshSide::kWest});
  for (; from / columns < row; from += columns) visit(MeshLink{from, MeshSide::kSouth});
  for (; from / columns > row; from -= columns) visit(MeshLink{from, MeshSide::kNorth});
}

/// Links between two nodes.
[[nodiscard]] std::uint32_t mesh_hops(const Machine::Noc& noc, std::uint32_t from,
                                      std::uint32_t to);

/// Cycles that a packet with so many bytes of data takes on wires of a width: at least 1.
[[nodiscard]] inline std::uint64_t packet_cycles(const Machine::Noc& noc, std::uint64_t bytes,
                                                 std::uint32_t width) noexcept {
  const std::uint64_t all = noc.header_bytes + bytes;
  return all <= width ? 1 : (all + width - 1) / width;
}

/// Links between the core of a machine, at noc.node, and its memory: the mean of all channels,
/// which share the addresses evenly.
[[nodiscard]] double mean_hops(const Machine& machine);

/// The ways between them.
struct MeshWays {
  std::uint32_t least_hops = 0;  ///< to the nearest channel
  /// Different links by which packets to channels leave the core's router; 0: some need none,
  /// because a channel is at the core's node. Packets from channels share the link to the core,
  /// which each holds as long as it takes on the narrowest link of its way.
  std::uint32_t exits = 0;
};
/// Of a machine with a mesh.
[[nodiscard]] MeshWays mesh_ways(const Machine& machine);

/// Bus cycles that the way to memory and back takes more than the latencies of the bus, on the mean
/// of all channels of an empty mesh; 0 without a mesh.
[[nodiscard]] double mesh_trip(const Machine& machine);
/// Bytes of packets times links between routers, headers included, for a core that moves `bytes`
/// from or to memory in requests of dma.request_bytes; 0 without a mesh.
[[nodiscard]] double mesh_byte_hops(const Machine& machine, double bytes);
/// Bytes that all packets of a core's requests move at most in a bus cycle, to it or from it,
/// without their headers: of requests of dma.request_bytes. Without a mesh the bus's width.
[[nodiscard]] double port_rate(const Machine& machine);

/// What is wrong with the nodes of cores, each of which has its own: one line, or nothing.
[[nodiscard]] std::string node_problem(const Machine::Noc& noc,
                                       const std::vector<std::uint32_t>& cores);

}  // namespace systole::hw

#include "hw/noc/mesh_nodes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

namespace systole::hw {

std::uint32_t channel_node(const Machine& machine, std::uint32_t channel) {
  const Machine::Noc& noc = machine.noc;
  const std::uint64_t twice = (2ULL * channel + 1) * noc.columns;
  const auto column = static_cast<std::uint32_t>(twice / (2ULL * machine.dram.channels));
  return (noc.rows - 1) * noc.columns + column;
}

const char* name_of(MeshSide side) {
  constexpr std::array kNames = {"east", "west", "south", "north"};
  return kNames.at(static_cast<std::size_t>(side));
}

std::string name_of(const Machine::Noc& noc, const MeshLink& link) {
  return "link_" + std::to_string(link.node % noc.columns) + "_" +
         std::to_string(link.node / noc.columns) + "_" + name_of(link.side);
}

std::uint32_t mesh_hops(const Machine::Noc& noc, std::uint32_t from, std::uint32_t to) {
  std::uint32_t hops = 0;
  for_each_link(noc, from, to, [&](const MeshLink&) { ++hops; });
  return hops;
}

double mean_hops(const Machine& machine) {
  std::uint64_t sum = 0;
  for (std::uint32_t channel = 0; channel < machine.dram.channels; ++channel) {
    sum += mesh_hops(machine.noc, machine.noc.node, channel_node(machine, channel));
  }
  return static_cast<double>(sum) / machine.dram.channels;
}

MeshWays mesh_ways(const Machine& machine) {
  const Machine::Noc& noc = machine.noc;
  MeshWays ways;
  ways.least_hops = ~0U;
  std::set<std::uint32_t> exits;
  for (std::uint32_t channel = 0; channel < machine.dram.channels; ++channel) {
    std::uint32_t hops = 0;
    for_each_link(noc, noc.node, channel_node(machine, channel), [&](const MeshLink& link) {
      if (hops++ == 0) exits.insert(link.index());
    });
    ways.least_hops = std::min(ways.least_hops, hops);
  }
  if (ways.least_hops != 0) ways.exits = static_cast<std::uint32_t>(exits.size());
  return ways;
}

double mesh_trip(const Machine& machine) {
  if (!has_mesh(machine)) return 0;
  const MeshWays ways = mesh_ways(machine);
  const std::uint32_t narrow = ways.least_hops == 0
                                   ? machine.bus.width_bytes
                                   : std::min(machine.bus.width_bytes, machine.noc.link_bytes);
  // The header goes both ways, once without data.
  return 2 * (mean_hops(machine) + 1) * machine.noc.hop_cycles +
         static_cast<double>(packet_cycles(machine.noc, 0, narrow) - 1);
}

double mesh_byte_hops(const Machine& machine, double bytes) {
  if (!has_mesh(machine)) return 0;
  const double headers = bytes / machine.dma.request_bytes * machine.noc.header_bytes;
  return (bytes + 2 * headers) * mean_hops(machine);
}

double port_rate(const Machine& machine) {
  const double width = machine.bus.width_bytes;
  if (!has_mesh(machine)) return width;
  const MeshWays ways = mesh_ways(machine);
  const double links = static_cast<double>(ways.exits) * machine.noc.link_bytes;
  const double request = machine.dma.request_bytes;
  return (links == 0 ? width : std::min(width, links)) * request /
         (request + machine.noc.header_bytes);
}

std::string node_problem(const Machine::Noc& noc, const std::vector<std::uint32_t>& cores) {
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (cores[i] >= mesh_nodes(noc)) {
      return "found core " + std::to_string(i) + " of " + std::to_string(cores.size()) +
             " at node " + std::to_string(cores[i]) + ", expected less than the " +
             std::to_string(mesh_nodes(noc)) +
             " nodes of noc.columns = " + std::to_string(noc.columns) +
             ", noc.rows = " + std::to_string(noc.rows);
    }
    const auto before = cores.begin() + static_cast<std::ptrdiff_t>(i);
    if (const auto same = std::find(cores.begin(), before, cores[i]); same != before) {
      return "found cores " + std::to_string(same - cores.begin()) + " and " + std::to_string(i) +
             " at node " + std::to_string(cores[i]) + ", expected a node for each core";
    }
  }
  return {};
}

}  // namespace systole::hw

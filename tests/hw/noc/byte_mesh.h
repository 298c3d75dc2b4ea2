#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

/// A mesh cycle by cycle and byte by byte, written from the definition of cut-through switching
/// with XY routing and without calendars: the reference of hw/noc/mesh.h.
namespace systole::test {

struct ByteMesh {
  std::uint32_t columns = 1;
  std::uint32_t hop_cycles = 1;
  std::uint32_t local_bytes = 16, link_bytes = 16;  ///< that links move in a cycle

  struct Packet {
    std::uint32_t from = 0, to = 0;  ///< nodes
    std::uint32_t bytes = 1;         ///< header included
    std::uint64_t ready = 0;         ///< cycle
  };

  /// The cycle after the last of each packet, which are there in the order of `ready`. A link that
  /// is free takes the packet whose first byte came first, of equals the first in the list, and
  /// keeps it to its last byte. All packets of a node share a link to its router and one back.
  [[nodiscard]] std::vector<std::uint64_t> run(const std::vector<Packet>& packets) const {
    State state;
    for (const Packet& packet : packets) {
      state.ways.push_back(way(packet));
      state.hops.emplace_back(state.ways.back().size());
      state.arrivals[packet.ready].push_back({state.ways.size() - 1, 0, packet.bytes});
    }
    state.ends.resize(packets.size());
    for (std::uint64_t cycle = 0; state.left(packets.size()); ++cycle) step(packets, state, cycle);
    return state.ends;
  }

 private:
  /// Of nodes: their column and row, or what is at the node (-1, sending; -2, receiving).
  using Link = std::pair<std::int64_t, std::int64_t>;

  struct Hop {
    std::uint64_t first = ~std::uint64_t{0};  ///< cycle in which its first byte came
    std::uint32_t here = 0, sent = 0;         ///< bytes
  };
  struct Arrival {
    std::size_t packet, hop;
    std::uint32_t bytes;
  };
  struct State {
    std::vector<std::vector<Link>> ways;
    std::vector<std::vector<Hop>> hops;
    std::map<std::uint64_t, std::vector<Arrival>> arrivals;
    std::map<Link, std::set<std::pair<std::size_t, std::size_t>>> waiting;  ///< packets and hops
    std::map<Link, std::pair<std::size_t, std::size_t>> held;
    std::vector<std::uint64_t> ends;
    std::size_t done = 0;
    [[nodiscard]] bool left(std::size_t packets) const { return done < packets; }
  };

  [[nodiscard]] std::vector<Link> way(const Packet& packet) const {
    std::vector<Link> links = {{-1, packet.from}};
    std::int64_t at = packet.from;
    const auto go = [&](std::int64_t to) {
      links.emplace_back(at, to);
      at = to;
    };
    while (at % columns != packet.to % columns) {
      go(at % columns < packet.to % columns ? at + 1 : at - 1);
    }
    while (at != packet.to) go(at < packet.to ? at + columns : at - columns);
    links.emplace_back(-2, packet.to);
    return links;
  }

  void step(const std::vector<Packet>& packets, State& state, std::uint64_t cycle) const {
    const auto come = state.arrivals.find(cycle);
    if (come != state.arrivals.end()) {
      for (const Arrival& arrival : come->second) {
        Hop& hop = state.hops[arrival.packet][arrival.hop];
        hop.first = std::min(hop.first, cycle);
        hop.here += arrival.bytes;
        if (hop.sent == 0) {
          state.waiting[state.ways[arrival.packet][arrival.hop]].insert(
              {arrival.packet, arrival.hop});
        }
      }
      state.arrivals.erase(come);
    }
    for (auto& [link, packets_here] : state.waiting) {
      if (state.held.count(link) != 0 || packets_here.empty()) continue;
      const auto next = std::min_element(
          packets_here.begin(), packets_here.end(), [&](const auto& a, const auto& b) {
            return std::pair(state.hops[a.first][a.second].first, a.first) <
                   std::pair(state.hops[b.first][b.second].first, b.first);
          });
      state.held[link] = *next;
      packets_here.erase(next);
    }
    for (auto held = state.held.begin(); held != state.held.end();) {
      held = send(packets, state, cycle, *held) ? state.held.erase(held) : std::next(held);
    }
  }

  /// Whether that was the packet's last byte.
  template <typename Held>
  bool send(const std::vector<Packet>& packets, State& state, std::uint64_t cycle,
            const Held& held) const {
    const auto [packet, at] = held.second;
    Hop& hop = state.hops[packet][at];
    const bool last_link = held.first.first == -2;
    const std::uint32_t width = held.first.first < 0 ? local_bytes : link_bytes;
    const std::uint32_t bytes = std::min(width, hop.here - hop.sent);
    hop.sent += bytes;
    if (!last_link && bytes != 0) {
      state.arrivals[cycle + hop_cycles].push_back({packet, at + 1, bytes});
    }
    if (hop.sent != packets[packet].bytes) return false;
    if (last_link) {
      state.ends[packet] = cycle + 1;
      ++state.done;
    }
    return true;
  }
};

}  // namespace systole::test

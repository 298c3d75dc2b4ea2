#include "tlm/bus/bus_mesh.h"

#include <algorithm>

#include "hw/noc/mesh_nodes.h"

namespace systole::tlm_model {

BusMesh::BusMesh(const hw::Machine& machine)
    : mesh_(machine.noc, machine.bus.width_bytes),
      mapping_(machine.dram),
      word_bytes_(machine.bus.width_bytes),
      channels_(machine.dram.channels) {
  mesh_.attach(hw::kHostNode, "host");
  for (std::uint32_t channel = 0; channel < channels_; ++channel) {
    const Endpoint endpoint =
        mesh_.attach(hw::channel_node(machine, channel), "channel" + std::to_string(channel));
    if (channel == 0) first_channel_ = endpoint;
  }
}

void BusMesh::place(unsigned target, Endpoint endpoint) {
  if (target >= targets_.size()) targets_.resize(target + 1, kHosts);
  targets_[target] = endpoint;
}

template <typename Send>
BusMesh::Passage BusMesh::for_each_packet(const Route& route, Send send) {
  const auto before = static_cast<std::uint32_t>(route.address % word_bytes_);
  if (route.target != memory_) {
    return send(route.target < targets_.size() ? targets_[route.target] : kHosts,
                before + route.bytes);
  }
  const std::uint64_t burst = mapping_.burst_bytes();
  const std::uint64_t end = route.address + std::max<std::uint32_t>(route.bytes, 1);
  const std::uint64_t first_end = (route.address / burst + 1) * burst;
  const std::uint32_t first = mapping_.locate(route.address).channel;
  if (end <= first_end || channels_ == 1) {
    return send(first_channel_ + first, before + route.bytes);
  }
  Passage last;
  // Bursts of a channel are `channels_` bursts apart.
  std::uint64_t begin = route.address;
  for (std::uint32_t i = 0; i < channels_ && begin < end; ++i) {
    std::uint64_t bytes = i == 0 ? before : 0, from = begin;
    for (std::uint64_t to = (from / burst + 1) * burst; from < end; to += channels_ * burst) {
      bytes += std::min(to, end) - from;
      from = to - burst + channels_ * burst;
    }
    const Passage passage =
        send(first_channel_ + (first + i) % channels_, static_cast<std::uint32_t>(bytes));
    const std::uint64_t byte_hops = last.byte_hops + passage.byte_hops;
    if (passage.end > last.end) last = passage;
    last.byte_hops = byte_hops;
    begin = (begin / burst + 1) * burst;
  }
  return last;
}

BusMesh::Passage BusMesh::send(Endpoint from, const Route& route, bool data,
                               std::uint64_t earliest) {
  return for_each_packet(route, [&](Endpoint to, std::uint32_t bytes) {
    return mesh_.send(from, to, data ? bytes : 0, earliest);
  });
}

BusMesh::Passage BusMesh::answer(Endpoint to, const Route& route, bool data,
                                 std::uint64_t earliest) {
  return for_each_packet(route, [&](Endpoint from, std::uint32_t bytes) {
    return mesh_.send(from, to, data ? bytes : 0, earliest);
  });
}

std::unique_ptr<BusMesh> make_mesh(const hw::Machine& machine) {
  return hw::has_mesh(machine) ? std::make_unique<BusMesh>(machine) : nullptr;
}

}  // namespace systole::tlm_model

#include "hw/noc/mesh.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace systole::hw {
namespace {

bool has_link(const Machine::Noc& noc, const MeshLink& link) {
  const std::uint32_t column = link.node % noc.columns, row = link.node / noc.columns;
  switch (link.side) {
    case MeshSide::kEast:
      return column + 1 < noc.columns;
    case MeshSide::kWest:
      return column != 0;
    case MeshSide::kSouth:
      return row + 1 < noc.rows;
    case MeshSide::kNorth:
      return row != 0;
  }
  return false;
}

}  // namespace

/// A packet's way so far.
struct Mesh::Head {
  std::uint64_t ready = 0;   ///< when it can enter its next link
  std::uint64_t length = 0;  ///< cycles that it holds a link for
  std::uint64_t end = 0, waited = 0, byte_hops = 0;
};

Mesh::Mesh(const Machine::Noc& noc, std::uint32_t local_bytes)
    : noc_(noc), local_bytes_(local_bytes), first_local_(mesh_nodes(noc) * kMeshSides) {
  if (local_bytes == 0 || noc.link_bytes == 0 || first_local_ == 0) {
    throw std::invalid_argument("mesh: no nodes, or links without wires");
  }
  links_.resize(first_local_);
  for (std::uint32_t node = 0; node < mesh_nodes(noc); ++node) {
    for (std::uint32_t side = 0; side < kMeshSides; ++side) {
      const MeshLink link{node, static_cast<MeshSide>(side)};
      if (has_link(noc, link)) links_[link.index()].name = name_of(noc, link);
    }
  }
}

Mesh::Endpoint Mesh::attach(std::uint32_t node, std::string name) {
  if (node >= mesh_nodes(noc_)) {
    throw std::invalid_argument("mesh: no node " + std::to_string(node));
  }
  nodes_.push_back(node);
  links_.emplace_back().name = "from_" + name;
  links_.emplace_back().name = "to_" + std::move(name);
  return static_cast<Endpoint>(nodes_.size() - 1);
}

void Mesh::pass(std::size_t index, std::uint32_t bytes, std::uint64_t length, Head& head) {
  Link& link = links_[index];
  head.length = std::max(head.length, length);
  link.calendar.retire(now_);
  const std::uint64_t begin = link.calendar.reserve(head.ready, head.length);
  ++link.packets;
  link.bytes += noc_.header_bytes + bytes;
  link.wait += begin - head.ready;
  head.waited += begin - head.ready;
  head.end = begin + head.length;
  head.ready = begin + noc_.hop_cycles;
  if (watch_ != nullptr) watch_->take(index, begin, head.end);
}

Mesh::Passage Mesh::send(Endpoint from, Endpoint to, std::uint32_t bytes, std::uint64_t earliest) {
  const std::uint64_t local = packet_cycles(noc_, bytes, local_bytes_);
  const std::uint64_t wide = packet_cycles(noc_, bytes, noc_.link_bytes);
  Head head;
  head.ready = earliest;
  pass(first_local_ + 2 * std::size_t{from}, bytes, local, head);
  for_each_link(noc_, nodes_[from], nodes_[to], [&](const MeshLink& link) {
    pass(link.index(), bytes, wide, head);
    head.byte_hops += noc_.header_bytes + bytes;
  });
  pass(first_local_ + 2 * std::size_t{to} + 1, bytes, local, head);
  ++packets_;
  byte_hops_ += head.byte_hops;
  return {head.end, head.waited, head.byte_hops};
}

void Mesh::set_counting(bool on, std::uint64_t now) {
  for (Link& link : links_) link.calendar.set_counting(on, now);
}

std::uint64_t Mesh::finish(std::uint64_t total) {
  for (const Link& link : links_) total = std::max(total, link.calendar.last_end());
  for (Link& link : links_) link.calendar.finish(total);
  return total;
}

BlockReport Mesh::report(std::string name) const {
  BlockReport report{
      std::move(name),
      {},
      {{"packets", "packets", "packets sent", packets_},
       {"byte_hops", "bytes", "bytes of packets, headers included, times links between routers",
        byte_hops_}},
      {}};
  for (const Link& link : links_) {
    if (link.name.empty()) continue;
    report.parts.push_back(
        {link.name,
         link.calendar.account().time(),
         {{"packets", "packets", "packets that passed", link.packets},
          {"bytes", "bytes", "bytes that passed, headers included", link.bytes},
          {"wait", "cycles", "between wanting and getting the link, all packets together",
           link.wait}},
         {}});
  }
  return report;
}

}  // namespace systole::hw

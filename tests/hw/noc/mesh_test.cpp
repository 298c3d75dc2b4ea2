#include "hw/noc/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "hw/noc/byte_mesh.h"
#include "support/random/random_machine.h"

namespace systole::hw {
namespace {

using systole::test::between;
using systole::test::ByteMesh;
using systole::test::power_of_two;
using systole::test::Random;

struct MeshCase {
  Machine::Noc noc;
  std::uint32_t local_bytes = 16;

  [[nodiscard]] ByteMesh reference() const {
    return {noc.columns, noc.hop_cycles, local_bytes, noc.link_bytes};
  }
};

MeshCase random_mesh(Random& random) {
  MeshCase mesh;
  mesh.noc.columns = between(random, 1, 5);
  mesh.noc.rows = between(random, 1, 5);
  mesh.noc.hop_cycles = between(random, 1, 6);
  mesh.noc.link_bytes = power_of_two(random, 0, 6);
  mesh.noc.header_bytes = between(random, 0, 3) * 4;
  mesh.local_bytes = power_of_two(random, 0, 6);
  return mesh;
}

/// Packets between random nodes, in the order of their times, `apart` cycles on the mean.
std::vector<ByteMesh::Packet> random_packets(Random& random, const MeshCase& mesh,
                                             std::size_t count, std::uint32_t apart) {
  const std::uint32_t last = mesh_nodes(mesh.noc) - 1;
  std::vector<ByteMesh::Packet> packets;
  std::uint64_t ready = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t data = between(random, 0, 1) * between(random, 1, 128);
    packets.push_back({between(random, 0, last), between(random, 0, last),
                       std::max(1U, data + mesh.noc.header_bytes), ready});
    ready += between(random, 0, 2 * apart);
  }
  return packets;
}

/// A mesh with an endpoint at each node.
Mesh mesh_of(const MeshCase& of) {
  Mesh mesh(of.noc, of.local_bytes);
  for (std::uint32_t node = 0; node < mesh_nodes(of.noc); ++node) {
    EXPECT_EQ(mesh.attach(node, "node" + std::to_string(node)), node);
  }
  return mesh;
}

std::vector<Mesh::Passage> send_all(Mesh& mesh, const MeshCase& of,
                                    const std::vector<ByteMesh::Packet>& packets) {
  std::vector<Mesh::Passage> passages;
  for (const ByteMesh::Packet& packet : packets) {
    mesh.retire(packet.ready);
    const std::uint32_t header = std::min(packet.bytes, of.noc.header_bytes);
    passages.push_back(mesh.send(packet.from, packet.to, packet.bytes - header, packet.ready));
  }
  return passages;
}

/// The formula of the latency without contention, from coordinates.
std::uint64_t zero_load(const MeshCase& mesh, const ByteMesh::Packet& packet) {
  const auto apart = [](std::uint32_t a, std::uint32_t b) {
    return std::max(a, b) - std::min(a, b);
  };
  const std::uint32_t columns = mesh.noc.columns;
  const std::uint32_t hops = apart(packet.from % columns, packet.to % columns) +
                             apart(packet.from / columns, packet.to / columns);
  const std::uint32_t width =
      hops == 0 ? mesh.local_bytes : std::min(mesh.local_bytes, mesh.noc.link_bytes);
  return (hops + 1) * mesh.noc.hop_cycles + (packet.bytes + width - 1) / width;
}

TEST(Mesh, TakesTheLatencyOfTheFormulaAndOfTheReferenceWithoutContention) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const MeshCase mesh = random_mesh(random);
    Mesh model = mesh_of(mesh);
    // So far apart that the longest packet has arrived.
    std::vector<ByteMesh::Packet> packets = random_packets(random, mesh, 20, 0);
    for (std::size_t j = 0; j < packets.size(); ++j) packets[j].ready = 400 * j;
    const auto passages = send_all(model, mesh, packets);
    const auto reference = mesh.reference().run(packets);
    for (std::size_t j = 0; j < packets.size(); ++j) {
      EXPECT_EQ(passages[j].waited, 0U);
      EXPECT_EQ(passages[j].end, packets[j].ready + zero_load(mesh, packets[j]));
      EXPECT_EQ(passages[j].end, reference[j]);
    }
    if (HasFailure()) return;
  }
}

// The reference gives a link to whoever comes first, the model to whoever called first, if no gap
// is long enough. Packets of one sender to one receiver come and call in the same order.
TEST(Mesh, QueuesThePacketsOfOneWayAsTheReferenceDoes) {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const MeshCase mesh = random_mesh(random);
    std::vector<ByteMesh::Packet> packets = random_packets(random, mesh, 40, 2);
    for (ByteMesh::Packet& packet : packets) {
      packet.from = packets.front().from;
      packet.to = packets.front().to;
    }
    Mesh model = mesh_of(mesh);
    const auto passages = send_all(model, mesh, packets);
    const auto reference = mesh.reference().run(packets);
    for (std::size_t j = 0; j < packets.size(); ++j) {
      EXPECT_EQ(passages[j].end, reference[j]) << j;
      EXPECT_EQ(passages[j].end,
                packets[j].ready + zero_load(mesh, packets[j]) + passages[j].waited);
    }
    if (HasFailure()) return;
  }
}

/// How the mean latency of the model compares with the reference's, on meshes of a load.
struct LoadRatios {
  double sum = 0, least = 1, most = 1;
  int count = 0;
  void add(double ratio) {
    sum += ratio;
    least = std::min(least, ratio);
    most = std::max(most, ratio);
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / count; }
};

// The reference lets a packet pass that comes before one which called first. So under load the
// model is pessimistic, the more so the busier the busiest link is: figures are in
// docs/blocks/noc.md.
TEST(Mesh, IsNearTheReferenceUnderLoad) {
  Random random(3);
  LoadRatios quarter, half, full, ends;
  for (int i = 0; i < 150; ++i) {
    const MeshCase mesh = random_mesh(random);
    const auto packets = random_packets(random, mesh, 150, between(random, 1, 12));
    Mesh model = mesh_of(mesh);
    const auto passages = send_all(model, mesh, packets);
    const auto reference = mesh.reference().run(packets);
    double ours = 0, theirs = 0;
    for (std::size_t j = 0; j < packets.size(); ++j) {
      ours += static_cast<double>(passages[j].end - packets[j].ready);
      theirs += static_cast<double>(reference[j] - packets[j].ready);
    }
    const auto end = static_cast<double>(model.finish(0));
    std::uint64_t busiest = 0;
    for (const Mesh::Link& link : model.links()) {
      busiest = std::max(busiest, link.calendar.account().time().busy);
    }
    const double load = static_cast<double>(busiest) / end;
    (load < 0.25 ? quarter : load < 0.5 ? half : full).add(ours / theirs);
    ends.add(end / static_cast<double>(*std::max_element(reference.begin(), reference.end())));
  }
  for (const LoadRatios* ratios : {&quarter, &half, &full, &ends}) {
    EXPECT_GT(ratios->count, 20);
    EXPECT_GT(ratios->least, 0.95);
  }
  EXPECT_LT(quarter.mean(), 1.01);
  EXPECT_LT(quarter.most, 1.04);
  EXPECT_LT(half.mean(), 1.05);
  EXPECT_LT(half.most, 1.15);
  EXPECT_LT(full.mean(), 1.2);
  EXPECT_LT(full.most, 2.0);
  EXPECT_LT(ends.most, 1.35);
}

TEST(Mesh, AccountsForEveryPacketOnEveryLink) {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    const MeshCase mesh = random_mesh(random);
    const auto packets = random_packets(random, mesh, 60, 3);
    Mesh model = mesh_of(mesh);
    std::uint64_t last = 0, hops = 0, waits = 0;
    for (const Mesh::Passage& passage : send_all(model, mesh, packets)) {
      last = std::max(last, passage.end);
      waits += passage.waited;
      hops += passage.byte_hops;
    }
    EXPECT_EQ(model.finish(0), last);
    std::uint64_t between_routers = 0;
    EXPECT_EQ(model.report("noc").counters[0].value, packets.size());
    for (const BlockReport& link : model.report("noc").parts) {
      EXPECT_EQ(link.time->busy + link.time->idle, last) << link.name;
      const std::uint64_t bytes = link.counters[1].value;
      const bool local = link.name.substr(0, 4) != "link";
      const std::uint32_t width = local ? mesh.local_bytes : mesh.noc.link_bytes;
      EXPECT_GE(link.time->busy * width, bytes) << link.name << ": more than its wires can";
      if (!local) between_routers += bytes;
      waits -= link.counters[2].value;
    }
    EXPECT_EQ(waits, 0U) << "each wait is a link's";
    EXPECT_EQ(between_routers, hops);
    if (HasFailure()) return;
  }
}

TEST(Mesh, RoutesAlongTheRowFirst) {
  Machine::Noc noc;
  noc.columns = 3;
  noc.rows = 3;
  const auto way = [&](std::uint32_t from, std::uint32_t to) {
    std::string text;
    for_each_link(noc, from, to, [&](const MeshLink& link) { text += name_of(noc, link) + " "; });
    return text;
  };
  EXPECT_EQ(way(0, 8), "link_0_0_east link_1_0_east link_2_0_south link_2_1_south ");
  EXPECT_EQ(way(8, 0), "link_2_2_west link_1_2_west link_0_2_north link_0_1_north ");
  EXPECT_EQ(way(3, 1), "link_0_1_east link_1_1_north ");
  EXPECT_EQ(way(4, 4), "");
  EXPECT_EQ(mesh_hops(noc, 0, 8), 4U);
}

TEST(Mesh, HasNoLinksAtItsEdges) {
  Machine::Noc noc;
  noc.columns = 4;
  noc.rows = 3;
  const Mesh mesh(noc, 16);
  const auto links = std::count_if(mesh.links().begin(), mesh.links().end(),
                                   [](const Mesh::Link& link) { return !link.name.empty(); });
  EXPECT_EQ(links, 2 * (3 * 3 + 4 * 2)) << "two between neighbours";
}

// A head that is held up keeps its packet in its router: others pass behind it.
TEST(Mesh, HoldsNoLinkWhileItWaitsForAnother) {
  Machine::Noc noc;
  noc.columns = 3;
  noc.header_bytes = 0;
  noc.hop_cycles = 1;
  Mesh mesh(noc, 16);
  for (std::uint32_t node = 0; node < 3; ++node) mesh.attach(node, "n" + std::to_string(node));
  EXPECT_EQ(mesh.send(1, 2, 160, 0).end, 12U) << "ten beats on the link of nodes 1 and 2";
  const Mesh::Passage waits = mesh.send(0, 2, 16, 0);
  EXPECT_EQ(waits.end, 13U);
  EXPECT_EQ(waits.waited, 9U);
  EXPECT_EQ(mesh.send(0, 1, 16, 1).end, 4U) << "the link of nodes 0 and 1 is free";
}

TEST(Mesh, NeverGetsSlowerByWiderOrShorterLinksWithoutContention) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    MeshCase mesh = random_mesh(random);
    const ByteMesh::Packet packet = random_packets(random, mesh, 1, 0).front();
    std::uint64_t before = ~std::uint64_t{0};
    for (std::uint32_t width = 1; width <= 256; width *= 2) {
      mesh.noc.link_bytes = width;
      Mesh model = mesh_of(mesh);
      const std::uint64_t end = send_all(model, mesh, {packet}).front().end;
      EXPECT_LE(end, before);
      before = end;
    }
  }
}

TEST(Mesh, SaysWhatItIsWatchedFor) {
  struct Watch final : MeshWatch {
    std::map<std::size_t, std::uint64_t> cycles;
    void take(std::size_t link, std::uint64_t begin, std::uint64_t end) override {
      cycles[link] += end - begin;
    }
  } watch;
  Random random(6);
  const MeshCase mesh = random_mesh(random);
  Mesh model = mesh_of(mesh);
  model.watch(watch);
  send_all(model, mesh, random_packets(random, mesh, 50, 3));
  model.finish(0);
  for (std::size_t i = 0; i < model.links().size(); ++i) {
    EXPECT_EQ(watch.cycles[i], model.links()[i].calendar.account().time().busy);
  }
}

TEST(Mesh, RefusesWhatIsNoMesh) {
  Machine::Noc noc;
  EXPECT_THROW(Mesh(noc, 16), std::invalid_argument);
  noc.columns = 2;
  EXPECT_THROW(Mesh(noc, 0), std::invalid_argument);
  Mesh mesh(noc, 16);
  EXPECT_THROW(mesh.attach(2, "far"), std::invalid_argument);
}

TEST(MeshNodes, SpreadChannelsOverTheLastRow) {
  Machine machine;
  machine.noc.columns = 4;
  machine.noc.rows = 4;
  const auto nodes = [&](std::uint32_t channels) {
    machine.dram.channels = channels;
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < channels; ++i) found.push_back(channel_node(machine, i));
    return found;
  };
  EXPECT_EQ(nodes(1), (std::vector<std::uint32_t>{14}));
  EXPECT_EQ(nodes(2), (std::vector<std::uint32_t>{13, 15}));
  EXPECT_EQ(nodes(4), (std::vector<std::uint32_t>{12, 13, 14, 15}));
  EXPECT_EQ(nodes(8), (std::vector<std::uint32_t>{12, 12, 13, 13, 14, 14, 15, 15}));
}

// Over all channels, from the ways themselves.
TEST(MeshNodes, SumUpTheWaysOfACore) {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    Machine machine;
    machine.noc = random_mesh(random).noc;
    machine.noc.node = between(random, 0, mesh_nodes(machine.noc) - 1);
    machine.dram.channels = power_of_two(random, 0, 3);
    const MeshWays ways = mesh_ways(machine);
    double sum = 0;
    bool at_home = false;
    std::map<std::string, int> out;
    for (std::uint32_t channel = 0; channel < machine.dram.channels; ++channel) {
      const std::uint32_t node = channel_node(machine, channel);
      std::vector<std::string> there, back;
      for_each_link(machine.noc, machine.noc.node, node,
                    [&](const MeshLink& link) { there.push_back(name_of(machine.noc, link)); });
      for_each_link(machine.noc, node, machine.noc.node,
                    [&](const MeshLink& link) { back.push_back(name_of(machine.noc, link)); });
      sum += static_cast<double>(there.size());
      EXPECT_GE(there.size(), ways.least_hops);
      EXPECT_EQ(there.size(), back.size());
      at_home = at_home || there.empty();
      if (there.empty()) continue;
      ++out[there.front()];
    }
    EXPECT_DOUBLE_EQ(mean_hops(machine), sum / machine.dram.channels);
    EXPECT_EQ(ways.least_hops == 0, at_home);
    EXPECT_EQ(ways.exits, at_home ? 0U : out.size());
  }
}

TEST(MeshNodes, FindCoresThatHaveNoNodeOfTheirOwn) {
  Machine::Noc noc;
  noc.columns = 2;
  noc.rows = 2;
  EXPECT_EQ(node_problem(noc, {0, 1, 3}), "");
  EXPECT_EQ(node_problem(noc, {0, 4}),
            "found core 1 of 2 at node 4, expected less than the 4 nodes of noc.columns = 2, "
            "noc.rows = 2");
  EXPECT_EQ(node_problem(noc, {2, 0, 2}),
            "found cores 0 and 2 at node 2, expected a node for each core");
}

}  // namespace
}  // namespace systole::hw

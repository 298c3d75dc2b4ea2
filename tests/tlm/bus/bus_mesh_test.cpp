#include "tlm/bus/bus_mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "hw/noc/mesh_nodes.h"
#include "support/random/random_machine.h"
#include "support/report_values.h"

namespace systole::tlm_model {
namespace {

hw::Machine meshed(std::uint32_t columns, std::uint32_t rows, std::uint32_t channels) {
  hw::Machine machine;
  machine.noc.columns = columns;
  machine.noc.rows = rows;
  machine.dram.channels = channels;
  return machine;
}

std::map<std::string, std::uint64_t> values(BusMesh& mesh) {
  mesh.mesh().finish(0);
  return test::values_of(mesh.mesh().report("noc"));
}

TEST(BusMesh, SendsAReadAsAHeaderAndAnswersWithItsData) {
  BusMesh mesh(meshed(2, 2, 1));  // the channel is at node 3
  const BusMesh::Endpoint core = mesh.add_core(0, "core");
  mesh.place_memory(0);
  // Three routers of two cycles, a beat; then five beats of 8 + 64 bytes.
  const BusMesh::Route route{0, 0x1000, 64};
  EXPECT_EQ(mesh.send(core, route, false, 10).end, 10U + 3 * 2 + 1);
  EXPECT_EQ(mesh.answer(core, route, true, 100).end, 100U + 3 * 2 + 5);
  const auto of = values(mesh);
  EXPECT_EQ(of.at("link_0_0_east.bytes"), 8U);
  EXPECT_EQ(of.at("link_1_0_south.bytes"), 8U);
  EXPECT_EQ(of.at("link_1_1_west.bytes"), 72U);
  EXPECT_EQ(of.at("link_0_1_north.bytes"), 72U);
  EXPECT_EQ(of.at("from_core.packets"), 1U);
  EXPECT_EQ(of.at("to_core.bytes"), 72U);
  EXPECT_EQ(of.at("byte_hops"), 2U * 8 + 2 * 72);
}

TEST(BusMesh, ReachesRegistersAtTheCoreAndHostsAtNodeZero) {
  BusMesh mesh(meshed(3, 1, 1));
  const BusMesh::Endpoint core = mesh.add_core(2, "core");
  mesh.place_memory(0);
  mesh.place(1, core);
  EXPECT_EQ(mesh.send(BusMesh::kHosts, {1, 0, 8}, true, 0).end, 3U * 2 + 1);
  EXPECT_EQ(mesh.send(core, {5, 0, 8}, true, 100).end, 100U + 3 * 2 + 1) << "nobody placed it";
  const auto of = values(mesh);
  EXPECT_EQ(of.at("to_core.packets"), 1U);
  EXPECT_EQ(of.at("to_host.packets"), 1U);
  EXPECT_EQ(of.at("to_channel0.packets"), 0U);
}

// Byte by byte, by the mapping of the DRAM.
TEST(BusMesh, SendsEachChannelTheBytesThatItHas) {
  test::Random random(1);
  for (int i = 0; i < 300; ++i) {
    hw::Machine machine = test::random_machine(random);
    test::randomise_mesh(machine, random, 1);
    BusMesh mesh(machine);
    const BusMesh::Endpoint core = mesh.add_core(machine.noc.node, "core");
    mesh.place_memory(7);
    const BusMesh::Route route{7, test::between(random, 0, 1 << 20),
                               test::between(random, 1, 4096)};
    const hw::DramMapping mapping(machine.dram);
    std::map<std::uint32_t, std::uint64_t> bytes;
    for (std::uint32_t at = 0; at < route.bytes; ++at) {
      bytes[mapping.locate(route.address + at).channel] += 1;
    }
    bytes[mapping.locate(route.address).channel] += route.address % machine.bus.width_bytes;
    const BusMesh::Passage passage = mesh.send(core, route, true, 0);
    std::uint64_t hops = 0;
    const auto of = values(mesh);
    for (std::uint32_t channel = 0; channel < machine.dram.channels; ++channel) {
      const std::string name = "to_channel" + std::to_string(channel);
      const bool used = bytes.count(channel) != 0;
      const std::uint64_t sent = used ? bytes[channel] + machine.noc.header_bytes : 0;
      EXPECT_EQ(of.at(name + ".packets"), used ? 1U : 0U);
      EXPECT_EQ(of.at(name + ".bytes"), sent);
      hops +=
          sent * hw::mesh_hops(machine.noc, machine.noc.node, hw::channel_node(machine, channel));
    }
    EXPECT_EQ(passage.byte_hops, hops);
    EXPECT_EQ(passage.end, of.at("from_core.total")) << "the last of them";
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace systole::tlm_model

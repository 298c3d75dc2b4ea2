#include "analysis/bound/memory_floor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/description/machine_text.h"
#include "hw/noc/mesh.h"
#include "support/random/random_machine.h"

namespace systole::analysis {
namespace {

/// A machine of one channel, with all clocks equal, and a mesh.
hw::Machine one_channel(test::Random& random) {
  hw::Machine machine;
  machine.bus.width_bytes = test::power_of_two(random, 2, 5);
  machine.dma.request_bytes = test::power_of_two(random, 4, 7);
  test::randomise_mesh(machine, random, 1);
  return machine;
}

struct CoreAndChannels {
  explicit CoreAndChannels(const hw::Machine& machine)
      : mesh(machine.noc, machine.bus.width_bytes), core(mesh.attach(machine.noc.node, "core")) {
    for (std::uint32_t i = 0; i < machine.dram.channels; ++i) {
      channels.push_back(mesh.attach(hw::channel_node(machine, i), "channel" + std::to_string(i)));
    }
  }
  hw::Mesh mesh;
  hw::Mesh::Endpoint core;
  std::vector<hw::Mesh::Endpoint> channels;
};

// A packet there and one back, on an empty mesh, in the place of a bus cycle and the beats.
TEST(MemoryFloor, OfAMeshHasTheWaysThatPacketsTake) {
  test::Random random(1);
  for (int i = 0; i < 300; ++i) {
    hw::Machine machine = one_channel(random);
    SCOPED_TRACE(hw::to_toml(machine));
    CoreAndChannels way(machine);
    const std::uint32_t bytes = machine.dma.request_bytes, width = machine.bus.width_bytes;
    const std::uint64_t beats = (bytes + width - 1) / width;
    const std::uint64_t request = way.mesh.send(way.core, way.channels[0], 0, 0).end - 1;
    const std::uint64_t answer = way.mesh.send(way.channels[0], way.core, bytes, 10000).end - 10001;
    const MemoryFloor mesh(machine);
    machine.noc.columns = 0;
    const MemoryFloor bus(machine);
    const auto more = static_cast<double>(request + answer) - static_cast<double>(beats - 1);
    for (const double floor : {mesh.read_trip(bytes) - bus.read_trip(bytes),
                               mesh.write_trip(bytes) - bus.write_trip(bytes)}) {
      EXPECT_LE(floor, more + 1e-6) << "a part of a beat counts as such";
      EXPECT_GE(floor, more - 1);
    }
    if (HasFailure()) return;
  }
}

// Many answers, one after the other, on links that are slower than the memory.
TEST(MemoryFloor, OfAMeshHasTheRateOfItsNarrowestLink) {
  test::Random random(2);
  int narrow = 0;
  for (int i = 0; i < 300; ++i) {
    hw::Machine machine = one_channel(random);
    machine.dram.channels = test::power_of_two(random, 0, 2);
    if (i % 2 == 0) {  // in the row of the channels, perhaps between them
      const std::uint32_t last = hw::mesh_nodes(machine.noc) - 1;
      machine.noc.node = test::between(random, last + 1 - machine.noc.columns, last);
    }
    machine.noc.link_bytes = test::power_of_two(random, 0, 2);
    machine.dma.request_bytes = test::power_of_two(random, 6, 8);  // few parts of beats
    machine.dram.mega_transfers = 20000;
    machine.dma.outstanding_reads = machine.dma.outstanding_writes = 64;
    SCOPED_TRACE(hw::to_toml(machine));
    CoreAndChannels way(machine);
    const std::uint32_t bytes = machine.dma.request_bytes;
    constexpr std::uint32_t kRequests = 200;
    std::uint64_t read = 0, written = 0;
    CoreAndChannels back(machine);
    for (std::uint32_t j = 0; j < kRequests; ++j) {
      const hw::Mesh::Endpoint from = way.channels[j % way.channels.size()];
      read = std::max(read, way.mesh.send(from, way.core, bytes, 0).end);
      written = std::max(written, back.mesh.send(back.core, from, bytes, 0).end);
    }
    const double all = static_cast<double>(bytes) * kRequests;
    const MemoryFloor floor(machine);
    EXPECT_LE(floor.move(all, 0, 0) - floor.read_trip(bytes), static_cast<double>(read));
    EXPECT_LE(floor.move(0, 0, all) - floor.write_trip(bytes), static_cast<double>(written));
    if (hw::mesh_ways(machine).least_hops == 0) continue;  // some packets pass no such link
    machine.noc.columns = 0;
    if (MemoryFloor(machine).move(all, 0, 0) > 0.5 * static_cast<double>(read)) continue;
    ++narrow;
    EXPECT_GE(floor.move(all, 0, 0), 0.8 * static_cast<double>(read));
    if (machine.dram.channels != 1) continue;  // writes leave by several links
    EXPECT_GE(floor.move(0, 0, all), 0.8 * static_cast<double>(read));
    if (HasFailure()) return;
  }
  EXPECT_GT(narrow, 30);
}

}  // namespace
}  // namespace systole::analysis

#include "analysis/mapped_cost.h"

#include <gtest/gtest.h>

#include <vector>

#include "analysis/port_traffic.h"
#include "hw/description/machine_file.h"
#include "model/build/encoder_graph.h"
#include "model/graph/graph_builder.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/seeded/shapes.h"

namespace systole::analysis {
namespace {

model::Graph small_encoder(const hw::Machine& machine) {
  return model::make_seeded_encoder("small", {2, 96, 3, 200, true}, 37, 1,
                                    {machine.datapath, true});
}

TEST(PortTraffic, SplitsRowsAtRequests) {
  const hw::Machine machine;  // 64-byte requests, 16-byte beats
  struct Case {
    std::uint64_t address, bytes, requests, beats, burst_bytes;
  };
  for (const Case& c : {Case{0, 64, 1, 4, 64},
                        {0, 256, 4, 16, 256},
                        {0, 1, 1, 1, 64},
                        {60, 8, 2, 2, 128},
                        {32, 128, 3, 8, 192},
                        {64, 65, 2, 5, 128}}) {
    PortTraffic traffic(machine);
    traffic.add_rows(c.address, 4096, 3, c.bytes);
    EXPECT_EQ(traffic.bytes(), 3 * c.bytes);
    EXPECT_EQ(traffic.requests(), 3 * c.requests) << c.address;
    EXPECT_EQ(traffic.beats(), 3 * c.beats) << c.address;
    EXPECT_EQ(traffic.burst_bytes(), 3 * c.burst_bytes) << c.address;
  }
}

TEST(PortTraffic, ShortRequestsMoveWholeBursts) {
  hw::Machine machine;
  machine.dma.request_bytes = 16;
  PortTraffic traffic(machine);
  traffic.add_rows(0, 64, 1, 64);
  EXPECT_EQ(traffic.requests(), 4U);
  EXPECT_EQ(traffic.burst_bytes(), 4U * 64);
}

TEST(MappedCost, HasTheMacsAndArrayCyclesOfTheMapper) {
  for (const char* name : {"tiny", "transformer"}) {
    const hw::Machine machine = hw::find_machine(name);
    const model::Graph graph = small_encoder(machine);
    const mapper::Mapping mapping = mapper::map_graph(graph, machine);
    const std::vector<OperatorEstimate> estimates = estimate(mapping, machine);
    ASSERT_EQ(estimates.size(), mapping.groups.size());
    std::uint64_t macs = 0, commands = 0;
    for (std::size_t i = 0; i < estimates.size(); ++i) {
      EXPECT_EQ(estimates[i].name, mapping.groups[i].name);
      EXPECT_EQ(estimates[i].bound.array, static_cast<double>(mapping.tilings[i].compute_cycles));
      EXPECT_GT(estimates[i].bound.postop, 0);
      macs += estimates[i].macs;
      commands += estimates[i].commands;
    }
    EXPECT_EQ(macs, model::count_macs(graph));
    EXPECT_EQ(commands + 1, mapping.program.commands.size());
  }
}

TEST(MappedCost, CountsWhatEncodersLeaveAndTheirPace) {
  const auto encoder = [](std::uint32_t lines) {
    hw::Machine machine = hw::find_machine("vitcod");
    machine.attention.encoder_lines = lines;
    const model::Graph graph =
        model::make_vit_graph(model::load_integer_vit(model::find_model("vit65-sparse90-ae")));
    for (const OperatorEstimate& e : estimate(mapper::map_graph(graph, machine), machine)) {
      if (e.name == "blocks.0.attn.encoder_q") return e;
    }
    return OperatorEstimate{};
  };
  const OperatorEstimate quick = encoder(16), slow = encoder(1);
  EXPECT_EQ(quick.written_bytes, 65U * 2 * 16);
  EXPECT_EQ(quick.macs, 65U * 16 * 4 * 2);
  EXPECT_EQ(quick.bound.array, 0);
  // 2 groups of 8 cycles a token, on one line; a row leaves the chain each cycle.
  EXPECT_EQ(slow.bound.postop - quick.bound.postop, 65 * (16 - 1));
}

TEST(MappedCost, MemoryTakesAsLongAsItsNarrowestPart) {
  const auto memory = [](const char* key, std::uint32_t value) {
    hw::Machine machine;
    const mapper::Mapping mapping = mapper::map_graph(small_encoder(machine), machine);
    if (key == std::string("outstanding")) machine.dma.outstanding_reads = value;
    if (key == std::string("bus")) machine.bus.width_bytes = value;
    if (key == std::string("dram")) machine.dram.mega_transfers = value;
    double sum = 0;
    for (const OperatorEstimate& e : estimate(mapping, machine)) sum += e.bound.memory;
    return sum;
  };
  const double before = memory("", 0);
  EXPECT_EQ(memory("outstanding", 32), before);  // the window was wide enough
  EXPECT_GT(memory("outstanding", 1), 5 * before);
  EXPECT_GT(memory("bus", 4), 3 * before);
  EXPECT_GT(memory("dram", 300), 4 * before);
}

TEST(MappedCost, NamesOfLayersAndHeadsAreAlike) {
  EXPECT_EQ(general_name("blocks.3.attn.head11.scores"), "blocks.*.attn.head*.scores");
  EXPECT_EQ(general_name("blocks.12.mlp.fc1"), "blocks.*.mlp.fc1");
  EXPECT_EQ(general_name("patch_embed"), "patch_embed");
}

}  // namespace
}  // namespace systole::analysis

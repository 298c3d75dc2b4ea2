#include "mapper/place/placement.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/round.h"
#include "hw/description/machine_file.h"
#include "hw/memory/dram_mapping.h"
#include "mapper/fuse/fusion.h"
#include "model/graph/graph_builder.h"
#include "model/seeded/shapes.h"
#include "support/random/random_graph.h"

namespace systole::mapper {
namespace {

using hw::DType;
using test::GraphSketch;
using Place = Location::Place;

Placement resident(const model::Graph& graph, const hw::Machine& machine, Residence residence) {
  const std::vector<Group> groups = fuse(graph, machine).groups;
  return place_tensors(graph, groups, find_pipelines(graph, groups, machine, {}), machine,
                       residence);
}
Placement place(const model::Graph& graph, const hw::Machine& machine) {
  return resident(graph, machine, {});
}

std::vector<std::uint64_t> stream_begins(const Placement& placement) {
  std::vector<std::uint64_t> begins;
  for (const Share& share : placement.shares) begins.push_back(share.stream_begin);
  return begins;
}

Location find(const model::Graph& graph, const hw::Machine& machine, const std::string& name) {
  return place(graph, machine).tensors[model::find_tensor(graph, name)];
}

/// x -> c -> q -> d, where q is small.
model::Graph two_layers(std::uint32_t rows, std::uint32_t cols, hw::DType type = DType::kS8) {
  GraphSketch g("two", 1);
  const model::View x = g.input("x", rows, 24);
  const model::View c = g.matmul("c", x, g.weight("w", 24, cols));
  const model::View q = g.stage("q", c, GraphSketch::to_bits(type == DType::kS8 ? 8 : 15, 6), type);
  if (type != DType::kS8) return g.take(g.stage("relu", q, GraphSketch::relu(), type));
  return g.take(g.matmul("d", q, g.weight("v", cols, 8)));
}

TEST(Placement, OperandAndResultHaveBothSides) {
  GraphSketch g("three", 1);
  const model::View x = g.input("x", 40, 24);
  const auto layer = [&](const char* name, const model::View& in) {
    const model::View c = g.matmul(std::string("c") + name, in, g.weight(name, in.cols, 48));
    return g.stage(std::string("q") + name, c, GraphSketch::to_bits(8, 6), DType::kS8);
  };
  const model::View q = layer("1", x), r = layer("2", q), s = layer("3", r);
  const model::Graph graph = g.take(g.matmul("d", s, g.weight("v", 48, 8)));
  hw::Machine machine;
  machine.scratchpad.banks = 2;
  Residence residence;
  residence.two_sides = true;
  const Placement placement = resident(graph, machine, residence);
  const std::uint64_t half = machine.scratchpad.kib * 1024 / 2;
  std::vector<bool> at_end;
  for (const model::View& view : {q, r, s}) {
    const Location& at = placement.tensors[view.tensor];
    ASSERT_EQ(at.place, Place::kScratchpad);
    at_end.push_back(at.address >= half);
  }
  EXPECT_NE(at_end[0], at_end[1]) << "one is read while the other is written";
  EXPECT_NE(at_end[1], at_end[2]);
}

// Equal columns of rows that are an even number of bursts apart lie in half of the bank groups and
// channels at most.
TEST(Placement, AnOddRowGapGoesRoundAllBankGroupsAndChannels) {
  for (const std::uint32_t channels : {1U, 2U, 4U}) {
    for (const std::uint32_t cols : {64U, 128U, 768U, 1024U, 3072U, 100U}) {
      hw::Machine machine;
      machine.dram.channels = channels;
      machine.mapper.on_chip = 0;
      const hw::DramMapping mapping(machine.dram);
      const model::Graph graph = two_layers(64, cols);
      const model::TensorId q = model::find_tensor(graph, "q");
      const auto places = [&](std::uint32_t row_gap) {
        Residence residence;
        residence.row_gap = row_gap;
        const Location at = resident(graph, machine, residence).tensors[q];
        EXPECT_EQ(at.pitch % kDramRowAlignment, 0U);
        EXPECT_GE(at.pitch, cols);
        std::set<std::pair<std::uint32_t, std::uint32_t>> all;
        for (std::uint32_t row = 0; row < 64; ++row) {
          const hw::DramLocation burst = mapping.locate(at.at_row(row, at.pitch));
          all.insert({burst.channel, burst.group});
        }
        return all.size();
      };
      const std::size_t all = std::size_t{channels} * machine.dram.bank_groups;
      EXPECT_EQ(places(1), all) << cols << " columns, " << channels << " channels";
      const bool is_odd = round_up(cols, kDramRowAlignment) / kDramRowAlignment % 2 != 0;
      EXPECT_EQ(places(2), is_odd ? all : all / 2) << cols << " columns";
      if (cols == 1024) {
        EXPECT_EQ(places(0), 1U);
      }
    }
  }
}

TEST(Placement, RowGapsAreTriedWhereBurstsTakeTurns) {
  hw::Machine machine;
  EXPECT_FALSE(row_gaps(machine, RowGaps::kWeighed).empty());
  machine.dram.bank_groups = 1;
  EXPECT_TRUE(row_gaps(machine, RowGaps::kWeighed).empty());
  machine.dram.channels = 2;
  EXPECT_FALSE(row_gaps(machine, RowGaps::kWeighed).empty());
  EXPECT_TRUE(row_gaps(machine, RowGaps::kNone).empty());
  machine.memory.model = hw::MemoryModel::kFixed;
  EXPECT_TRUE(row_gaps(machine, RowGaps::kWeighed).empty());
}

TEST(Placement, WhatOnlyMatmulsReadStaysOnChip) {
  const hw::Machine machine;
  const model::Graph graph = two_layers(40, 50);
  const Location q = find(graph, machine, "q");
  EXPECT_EQ(q.place, Place::kScratchpad);
  EXPECT_EQ(q.pitch, 64U) << "whole scratchpad words of 16 bytes";
  EXPECT_EQ(find(graph, machine, "c").place, Place::kNowhere) << "fused away";
  EXPECT_EQ(find(graph, machine, "w").place, Place::kNowhere) << "weights stand tile by tile";
  EXPECT_EQ(find(graph, machine, "x").place, Place::kDram) << "the host writes it";
  EXPECT_EQ(find(graph, machine, "d").place, Place::kDram) << "the host reads it";
  EXPECT_EQ(stream_begins(place(graph, machine)), std::vector<std::uint64_t>(2, 40 * 64));
}

TEST(Placement, NothingStaysOnChipOfAMachineThatSpills) {
  hw::Machine machine;
  machine.mapper.on_chip = 0;
  const model::Graph graph = two_layers(40, 50);
  EXPECT_EQ(find(graph, machine, "q").place, Place::kDram);
  EXPECT_EQ(stream_begins(place(graph, machine)), std::vector<std::uint64_t>(2, 0));
}

TEST(Placement, RowsInDramBeginAtMultiplesOf64Bytes) {
  const hw::Machine machine;
  const model::Graph graph = two_layers(40, 50);
  const Location d = find(graph, machine, "d");  // rows of 8 int32
  EXPECT_EQ(d.pitch, 64U);
  EXPECT_EQ(d.address % 64, 0U);
  EXPECT_EQ(find(graph, machine, "x").pitch, 64U);
}

TEST(Placement, HalfOfTheScratchpadIsLeftForStreaming) {
  hw::Machine machine;
  machine.scratchpad.kib = 8;
  EXPECT_EQ(find(two_layers(64, 64), machine, "q").place, Place::kScratchpad) << "4096 bytes";
  EXPECT_EQ(find(two_layers(65, 64), machine, "q").place, Place::kDram);
  EXPECT_EQ(find(two_layers(64, 65), machine, "q").place, Place::kDram);
}

TEST(Placement, WhatThePostOpUnitReadsIsInDram) {
  GraphSketch g("residual", 1);
  const hw::Machine machine;
  const model::View x = g.input("x", 10, 16);
  const model::View a =
      g.stage("a", g.matmul("c", x, g.weight("w", 16, 16)), GraphSketch::to_bits(8, 6), DType::kS8);
  const model::View b =
      g.stage("b", g.matmul("d", a, g.weight("v", 16, 16)),
              model::add_tensor_stage(DType::kS8, {}, 8, hw::Rounding::kHalfUp), DType::kS32, a);
  EXPECT_EQ(find(g.take(b), machine, "a").place, Place::kDram) << "read as a tensor operand too";
  EXPECT_EQ(find(two_layers(10, 16, DType::kS16), machine, "q").place, Place::kNowhere);
}

TEST(Placement, ViewsMayBeginAtAnyByte) {
  const hw::Machine machine;
  for (const std::uint32_t first : {0U, 16U, 8U, 3U}) {
    GraphSketch g("views", 1);
    const model::View x = g.input("x", 10, 16);
    model::View q = g.stage("q", g.matmul("c", x, g.weight("w", 16, 48)),
                            GraphSketch::to_bits(8, 6), DType::kS8);
    q.col = first;
    q.cols = 16;
    const model::Graph graph = g.take(g.matmul("d", q, g.weight("v", 16, 8)));
    EXPECT_EQ(find(graph, machine, "q").place, Place::kScratchpad) << first;
  }
}

TEST(Placement, RowSumsLiveInTheRowStatistics) {
  const hw::Machine machine = hw::find_machine("transformer");
  const model::Graph graph = model::make_seeded_encoder("e", {1, 32, 2, 64, true}, 19, 1);
  const Location first = find(graph, machine, "blocks.0.attn.head0.row_sum");
  const Location second = find(graph, machine, "blocks.0.attn.head1.row_sum");
  EXPECT_EQ(first.place, Place::kStatistics);
  EXPECT_EQ(second.place, Place::kStatistics);
  EXPECT_EQ(first.address, 0U);
  EXPECT_EQ(second.address, 0U) << "the first head is done when the second begins";
}

TEST(Placement, LessMayReside) {
  hw::Machine machine;
  machine.scratchpad.kib = 16;
  const auto place_of = [&](const model::Graph& graph, std::uint32_t eighths) {
    return resident(graph, machine, {eighths, false, false})
        .tensors[model::find_tensor(graph, "q")]
        .place;
  };
  EXPECT_EQ(place_of(two_layers(64, 64), 2), Place::kScratchpad);
  EXPECT_EQ(place_of(two_layers(65, 64), 2), Place::kDram) << "4160 of 4096 bytes";
  EXPECT_EQ(place_of(two_layers(65, 64), 3), Place::kScratchpad);
}

TEST(Placement, BanksOfTheirOwnForWhatStaysAndWhatStreams) {
  hw::Machine machine;
  machine.scratchpad.kib = 64;
  machine.scratchpad.banks = 8;
  constexpr std::uint64_t kBank = 8 * 1024;
  GraphSketch g("three", 1);
  const model::View x = g.input("x", 40, 24);
  const auto to_bits = GraphSketch::to_bits(8, 6);
  const model::View q = g.stage("q", g.matmul("c", x, g.weight("w", 24, 48)), to_bits, DType::kS8);
  const model::View r = g.stage("r", g.matmul("d", q, g.weight("v", 48, 48)), to_bits, DType::kS8);
  const model::Graph graph = g.take(g.matmul("e", r, g.weight("u", 48, 8)));
  const auto address = [&](const Placement& placement, const char* name) {
    return placement.tensors[model::find_tensor(graph, name)].address;
  };
  const Placement packed = place(graph, machine);
  const Placement apart = resident(graph, machine, {4, false, true});
  EXPECT_EQ(address(packed, "q"), 0U);
  EXPECT_EQ(address(packed, "r"), 40U * 48);
  EXPECT_EQ(address(apart, "q"), 0U);
  EXPECT_EQ(address(apart, "r"), kBank);
  EXPECT_EQ(stream_begins(packed), (std::vector<std::uint64_t>{40 * 48, 2 * 40 * 48, 2 * 40 * 48}));
  EXPECT_EQ(stream_begins(apart), (std::vector<std::uint64_t>{kBank, 2 * kBank, 2 * kBank}));
}

// Queries, keys and values of all heads follow each other in a row, as wide as it is.
TEST(Placement, RowsNarrowerThanTheArrayAreNotPaddedToIt) {
  hw::Machine machine;
  const model::Graph graph = model::make_seeded_encoder("heads", {1, 16, 2, 32, false}, 10, 1);
  for (const std::uint32_t size : {4U, 16U, 64U, 128U}) {
    machine.array.rows = machine.array.cols = size;
    const Placement placement = resident(graph, machine, {});
    std::size_t residents = 0;
    for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
      const Location& location = placement.tensors[id];
      if (location.place != Place::kScratchpad) continue;
      ++residents;
      const std::uint32_t cols = graph.tensors[id].cols;
      EXPECT_EQ(location.pitch, round_up(cols, std::min(size, 16U))) << graph.tensors[id].name;
      EXPECT_EQ(location.at_col(cols / 2 + 1, 1), cols / 2 + 1);
    }
    EXPECT_GT(residents, 2U);
  }
}

}  // namespace
}  // namespace systole::mapper

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "mapper/fuse/fusion.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"
#include "model/seeded/shapes.h"
#include "support/network/pipelined_mapping.h"
#include "support/random/random_machine.h"

/// What is in the memories at the same time does not share them, whatever is pipelined.
namespace systole::mapper {
namespace {

using Place = Location::Place;

/// By group, the last one that begins before it ends, in the order in which tiles are issued. All
/// groups have as many tiles.
std::vector<std::size_t> last_begun(const std::vector<Pipeline>& pipelines) {
  constexpr std::uint32_t kTiles = 16;
  std::vector<Tile> column;
  for (std::uint32_t row = 0; row < kTiles; ++row) column.push_back({row, 0, 1, 1});
  std::vector<std::size_t> last;
  for (const Pipeline& pipeline : pipelines) {
    std::vector<std::size_t> begun(pipeline.levels.size(), 0);
    std::size_t latest = 0;
    for (const Turn& turn : turns_of(pipeline, {pipeline.levels.size(), column})) {
      latest = std::max(latest, turn.group);
      if (turn.tile + 1 == kTiles) begun[turn.group] = pipeline.first + latest;
    }
    last.insert(last.end(), begun.begin(), begun.end());
  }
  return last;
}

/// What one tensor takes of a memory, and the groups between which it must keep it.
struct Stay {
  std::string name;
  Place place;
  std::uint64_t begin, end;
  std::size_t first, last;
  bool in_ring;
};

std::uint64_t bytes_or_words(const model::Tensor& tensor, const Location& at) {
  const std::uint64_t rows =
      at.ring.slots == 0 ? tensor.rows : std::uint64_t{at.ring.slots} * at.ring.rows;
  const std::uint64_t sections = at.section == 0 ? 1 : tensor.cols / at.section;
  return sections * rows * (at.place == Place::kStatistics ? tensor.cols : at.pitch);
}

std::vector<Stay> stays(const model::Graph& graph, const std::vector<Group>& groups,
                        const std::vector<Pipeline>& pipelines, const Placement& placement) {
  const std::vector<std::size_t> begun = last_begun(pipelines);
  std::vector<Stay> result;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const model::Tensor& tensor = graph.tensors[id];
    const Location& at = placement.tensors[id];
    if (at.place == Place::kNowhere) continue;
    Stay stay{tensor.name,   at.place, at.address,        at.address + bytes_or_words(tensor, at),
              groups.size(), 0,        at.ring.slots != 0};
    for (std::size_t step = 0; step < groups.size(); ++step) {
      const Group& group = groups[step];
      std::vector<std::size_t> used = {group.a.tensor, group.statistics, group.out.tensor};
      for (const model::View& view : group.tensors) used.push_back(view.tensor);
      if (group.matmul() != nullptr) used.push_back(group.matmul()->b.tensor);
      if (std::find(used.begin(), used.end(), id) == used.end()) continue;
      stay.first = std::min(stay.first, step);
      stay.last = std::max(stay.last, begun.at(step));
    }
    // The host writes inputs before the first group and reads outputs after the last; what the
    // image holds must survive every inference.
    if (tensor.kind != model::Tensor::Kind::kActivation || !tensor.data.empty()) {
      stay.first = 0;
      stay.last = groups.size();
    }
    result.push_back(stay);
  }
  return result;
}

/// Every group has its share above the tensors, inside the memories and apart from those of the
/// other levels.
void expect_apart(const Pipeline& pipeline, const Placement& placement,
                  const hw::Machine& machine) {
  const std::uint64_t sums = machine.accumulator.kib * hw::kKib / 4 / 2;
  for (std::size_t step = pipeline.first; step < pipeline.end(); ++step) {
    const Share& share = placement.shares.at(step);
    EXPECT_LE(share.stream_begin, share.stream_end);
    EXPECT_LE(share.stream_end, machine.scratchpad.kib * hw::kKib);
    EXPECT_LT(share.sums_begin, share.sums_end);
    EXPECT_LE(share.sums_end, sums);
    EXPECT_EQ(share.in_turns, !pipeline.is_single());
    const std::uint32_t level = pipeline.levels[step - pipeline.first];
    const bool in_strips = pipeline.strips > 1 && level == pipeline.scores_level();
    EXPECT_EQ(share.strip_rows, in_strips ? pipeline.row_tile : 0);
    if (level < pipeline.scores_level()) {
      EXPECT_EQ(share.row_tile, 0U) << "a product before heads has rows of its own";
    } else {
      EXPECT_LE(share.row_tile, pipeline.row_tile * pipeline.strips);
      EXPECT_GE(share.row_tile, pipeline.row_tile);
      if (!in_strips) EXPECT_EQ(share.row_tile, pipeline.row_tile);
    }
    for (std::size_t other = pipeline.first; other < step; ++other) {
      if (pipeline.levels[other - pipeline.first] == pipeline.levels[step - pipeline.first]) {
        continue;  // they do not run in turns
      }
      const Share& before = placement.shares.at(other);
      EXPECT_TRUE(before.stream_end <= share.stream_begin ||
                  share.stream_end <= before.stream_begin);
      EXPECT_TRUE(before.sums_end <= share.sums_begin || share.sums_end <= before.sums_begin);
    }
  }
}

struct OnChipCounts {
  std::size_t on_chip = 0, rings = 0, shared_rows = 0, joined = 0, projected = 0;
};

void expect_no_overlap(const model::Graph& graph, const hw::Machine& machine, Pipelining allowed,
                       OnChipCounts& counts) {
  const std::vector<Group> groups = fuse(graph, machine).groups;
  const std::vector<Pipeline> pipelines = find_pipelines(graph, groups, machine, allowed);
  const Placement placement = place_tensors(graph, groups, pipelines, machine);
  ASSERT_EQ(placement.shares.size(), groups.size());
  const std::vector<Stay> all = stays(graph, groups, pipelines, placement);
  for (const Stay& a : all) {
    if (a.place == Place::kScratchpad) {
      ++counts.on_chip;
      counts.rings += a.in_ring ? 1 : 0;
      for (std::size_t step = a.first; step <= a.last; ++step) {
        EXPECT_LE(a.end, placement.shares.at(step).stream_begin) << a.name;
      }
    }
    if (a.place == Place::kDram) {
      EXPECT_LE(a.end, placement.dram_end);
    }
    if (a.place == Place::kStatistics) {
      EXPECT_LE(a.end, machine.postop.row_statistics);
    }
    for (const Stay& b : all) {
      if (&a == &b || a.place != b.place || a.last < b.first || b.last < a.first) continue;
      // Heads of a pipeline share its ring: PipelineProperty tests the values in it.
      if (a.in_ring && b.in_ring && a.begin == b.begin) continue;
      EXPECT_TRUE(a.end <= b.begin || b.end <= a.begin) << a.name << " and " << b.name;
    }
  }
  for (const Pipeline& pipeline : pipelines) {
    expect_apart(pipeline, placement, machine);
    EXPECT_LE(placement.shares[pipeline.first].stream_begin,
              std::uint64_t{machine.scratchpad.kib} * 512 + machine.array.rows);
    counts.shared_rows += pipeline.slots == 0 && !pipeline.is_single() ? 1 : 0;
    counts.joined += pipeline.by_rows ? 1 : 0;
    counts.projected += pipeline.section != 0 ? 1 : 0;
  }
}

TEST(Placement, NothingThatLivesAtOnceSharesAnAddress) {
  test::Random random(1);
  OnChipCounts counts;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::uint32_t heads = test::between(random, 1, 4);
    const model::Graph graph = model::make_seeded_encoder(
        "e",
        {test::between(random, 1, 3), heads * test::between(random, 1, 20), heads,
         test::between(random, 1, 90), random() % 2 == 0},
        test::between(random, 1, 40), seed);
    hw::Machine machine = test::random_machine(random);
    machine.accumulator.kib = 64;
    for (const Pipelining& allowed : test::kAllPipelinings) {
      SCOPED_TRACE("graph " + std::to_string(seed) + ", " + test::text_of(allowed));
      expect_no_overlap(graph, machine, allowed, counts);
    }
  }
  EXPECT_GT(counts.on_chip, 400U);
  EXPECT_GT(counts.rings, 50U);
  EXPECT_GT(counts.shared_rows, 50U);
  EXPECT_GT(counts.joined, 50U);
  EXPECT_GT(counts.projected, 50U);
}

}  // namespace
}  // namespace systole::mapper

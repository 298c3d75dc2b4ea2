#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_text.h"
#include "hw/program/program.h"
#include "model/seeded/shapes.h"
#include "support/network/mapped_run.h"
#include "support/network/pipelined_mapping.h"
#include "support/random/draws.h"
#include "support/random/random_machine.h"

/// Whatever is pipelined, the values are those of the graph.
namespace systole::mapper {
namespace {

using test::Random;

struct PipelineCounts {
  std::size_t mapped = 0, at_end = 0, rings = 0, wraps = 0, rows = 0, joined = 0, passing = 0;
  std::size_t ahead = 0, between = 0, strips = 0, strip_tiles = 0;
  std::size_t projected = 0, projected_strips = 0, wide = 0, in_dram = 0;
};

/// A tile of scores is multiplied as a whole, and leaves strip by strip; its operands are used in
/// no other tile, so that keys pass once for all of its strips.
void expect_strips(const test::PipelinedMapping& result, const Pipeline& pipeline,
                   PipelineCounts& counts) {
  if (pipeline.strips < 2) return;
  const std::vector<hw::Command>& commands = result.mapping.program.commands;
  const std::size_t first = pipeline.first + pipeline.scores_level();
  for (std::size_t group = first; group < pipeline.end(); group += 2) {
    const std::uint32_t rows = result.mapping.program.operators[group].rows;
    const std::uint32_t tile_rows = std::min(rows, pipeline.row_tile * pipeline.strips);
    std::uint64_t multiplied = 0, left = 0;
    for (const hw::Command& command : commands) {
      if (command.op != group) continue;
      if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
        EXPECT_TRUE(matmul->m == tile_rows || matmul->m == rows % tile_rows) << matmul->m;
        if (!matmul->accumulate) multiplied += std::uint64_t{matmul->m} * matmul->n;
      } else if (const auto* const move = command.as<hw::cmd::Move>()) {
        EXPECT_LE(move->m, pipeline.row_tile);
        left += move->m;
      }
    }
    EXPECT_EQ(left, rows) << "each row once";
    EXPECT_EQ(multiplied, std::uint64_t{rows} * result.mapping.program.operators[group].cols);
    ++counts.strips;
    counts.strip_tiles += rows > tile_rows ? 1 : 0;
  }
}

/// Weights that reside are loaded once, before their product, between commands of other groups.
void expect_loaded_once(const model::Graph& graph, const test::PipelinedMapping& result,
                        PipelineCounts& counts) {
  const std::vector<hw::Command>& commands = result.mapping.program.commands;
  for (std::size_t group = 0; group < result.mapping.groups.size(); ++group) {
    const MatmulAnchor* const product = result.mapping.groups[group].matmul();
    if (product == nullptr) continue;
    const model::Tensor& weights = graph.tensors[product->b.tensor];
    const Location& at = result.mapping.tensors[product->b.tensor];
    if (weights.kind != model::Tensor::Kind::kConstant ||
        at.place != Location::Place::kScratchpad) {
      continue;
    }
    ++counts.ahead;
    const std::uint64_t end = at.address + std::uint64_t{weights.rows} * at.pitch;
    std::uint64_t loaded = 0;
    std::size_t last = 0, first_product = commands.size();
    bool others_between = false;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const auto* const load = commands[i].as<hw::cmd::Load>();
      if (commands[i].op != group) {
        others_between |= loaded != 0 && loaded != end - at.address;
        continue;
      }
      if (commands[i].as<hw::cmd::Matmul>() != nullptr) first_product = std::min(first_product, i);
      if (load == nullptr || load->to.address < at.address || load->to.address >= end) continue;
      loaded += std::uint64_t{load->m} * load->n;
      last = i;
    }
    EXPECT_EQ(loaded, end - at.address) << weights.name;
    EXPECT_LT(last, first_product) << weights.name;
    counts.between += others_between ? 1 : 0;
  }
}

void count(const test::PipelinedMapping& result, PipelineCounts& counts) {
  ++counts.mapped;
  for (const Location& at : result.mapping.tensors) {
    const bool resides = at.place == Location::Place::kScratchpad;
    if (resides && at.address >= result.mapping.shares.front().stream_end) ++counts.at_end;
  }
  for (const Pipeline& pipeline : result.pipelines) {
    if (pipeline.is_single()) continue;
    if (pipeline.slots == 0) {
      ++counts.rows;
      continue;
    }
    ++counts.rings;
    expect_strips(result, pipeline, counts);
    const hw::Operator& scores =
        result.mapping.program.operators[pipeline.first + pipeline.scores_level()];
    EXPECT_EQ(scores.place, hw::Operator::Place::kRing) << scores.name;
    if (pipeline.by_rows) ++counts.joined;
    if (pipeline.section != 0) {
      const hw::Operator& product = result.mapping.program.operators[pipeline.first];
      EXPECT_EQ(product.section, pipeline.section);
      ++counts.projected;
      counts.projected_strips += pipeline.strips > 1 ? 1 : 0;
      counts.wide += result.mapping.tilings[pipeline.first].c_cols > pipeline.section ? 1 : 0;
      counts.in_dram += product.place == hw::Operator::Place::kDram ? 1 : 0;
    }
    for (const model::TensorId id : pipeline.passing) {
      const Location& at = result.mapping.tensors.at(id);
      if (at.place == Location::Place::kScratchpad) ++counts.passing;
    }
    // Later tiles take the place of earlier ones of the same head.
    if (scores.rows > std::uint64_t{pipeline.slots} * pipeline.row_tile) ++counts.wraps;
  }
}

TEST(PipelineProperty, EncodersComputeTheGraphHoweverTheyArePipelined) {
  Random random(11);
  PipelineCounts counts;
  for (std::uint64_t seed = 0; seed < test::draws(45U); ++seed) {
    model::EncoderShape shape;
    shape.layers = 1;
    shape.heads = test::between(random, 1, 4);
    shape.width = shape.heads * test::between(random, 1, 17);
    shape.hidden = test::between(random, 1, 240);
    shape.post_norm = random() % 2 != 0;
    shape.causal = seed % 3 == 0;
    const model::Graph graph =
        model::make_seeded_encoder("encoder", shape, test::between(random, 1, 110), seed);
    hw::Machine machine = test::random_machine(random);
    // The loops of Gemmini know no pipelines, and a search takes most of the time of a mapping.
    machine.mapper.strategy = hw::MappingStrategy::kCost;
    // Sums of few rows, so that heads take several tiles.
    if (random() % 2 != 0) {
      machine.accumulator.kib = test::between(random, 1, 8);
    } else if (seed % 2 == 0) {
      // Rings of few rows, so that the accumulator holds several strips.
      machine.scratchpad.kib = std::min(machine.scratchpad.kib, 8U);
      machine.accumulator.kib = test::between(random, 8, 40);
    }
    TilingChoice choice(machine);
    Residence residence;
    residence.two_sides = seed % 2 != 0;
    residence.ahead = seed % 3 == 0 ? 0 : 7;
    std::vector<std::vector<Pipeline>> seen;
    for (const Pipelining& allowed : test::kAllPipelinings) {
      SCOPED_TRACE(test::text_of(allowed) + ", graph " + std::to_string(seed) + " on\n" +
                   hw::to_toml(machine));
      std::optional<test::PipelinedMapping> result;
      try {
        result = test::map_pipelined(graph, machine, allowed, choice, residence);
      } catch (const hw::InputError&) {
        continue;  // too small
      }
      if (std::find(seen.begin(), seen.end(), result->pipelines) != seen.end()) continue;
      seen.push_back(result->pipelines);
      EXPECT_NO_THROW(
          hw::check_program(result->mapping.program, machine, result->mapping.dram_bytes));
      test::expect_program_computes_graph(graph, machine, result->mapping, seed);
      count(*result, counts);
      expect_loaded_once(split_norms(graph, machine), *result, counts);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(counts.mapped, test::finds(120U));
  EXPECT_GT(counts.at_end, test::finds(100U));
  EXPECT_GT(counts.rings, test::finds(40U));
  EXPECT_GT(counts.wraps, test::finds(20U));
  EXPECT_GT(counts.rows, test::finds(80U));
  EXPECT_GT(counts.joined, test::finds(25U));
  EXPECT_GT(counts.passing, test::finds(30U));
  EXPECT_GT(counts.ahead, test::finds(20U));
  EXPECT_GT(counts.between, test::finds(1U));
  EXPECT_GT(counts.strips, test::finds(8U));
  EXPECT_GT(counts.strip_tiles, test::finds(5U));
  EXPECT_GT(counts.projected, test::finds(20U));
  EXPECT_GT(counts.projected_strips, 0U);
  EXPECT_GT(counts.wide, test::finds(10U));
  EXPECT_GT(counts.in_dram, test::finds(3U));
}

}  // namespace
}  // namespace systole::mapper

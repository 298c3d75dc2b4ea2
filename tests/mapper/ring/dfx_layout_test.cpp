#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "mapper/ring/image.h"
#include "mapper/ring/layout.h"
#include "mapper/ring/pass.h"
#include "model/float/gpt.h"

namespace systole::mapper::dfx {
namespace {

using hw::dfx::Opcode;
using model::gpt_shape;

hw::Machine machine_with(std::uint32_t cores) {
  hw::Machine machine = hw::find_machine("dfx");
  machine.dfx.cores = cores;
  return machine;
}

TEST(DfxSplit, CoversAllAndDiffersByOne) {
  for (std::uint32_t count = 0; count < 40; ++count) {
    for (std::uint32_t parts = 1; parts <= 8; ++parts) {
      std::uint32_t next = 0;
      for (std::uint32_t i = 0; i < parts; ++i) {
        const Range range = split(count, parts, i);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), count / parts);
        EXPECT_LE(range.size(), ceil_div(count, parts));
        next = range.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

// Facts on DFX: weights of the layers and of the output vocabulary in FP16.
TEST(DfxLayout, HoldsTheWeightsOfThePublishedSizes) {
  const struct {
    const char* name;
    double megabytes;
  } sizes[] = {
      {"gpt2", 247.1}, {"gpt2-medium", 706.9}, {"gpt2-large", 1544.2}, {"gpt2-xl", 3109.9}};
  for (const auto& size : sizes) {
    for (const std::uint32_t cores : {1U, 2U, 4U}) {
      double bytes = 0;
      for (std::uint32_t i = 0; i < cores; ++i) {
        bytes += static_cast<double>(
            lay_out(gpt_shape(size.name), machine_with(cores), i).hbm.weight_bytes);
      }
      EXPECT_NEAR(bytes / 1e6, size.megabytes, 0.002 * size.megabytes) << size.name << ' ' << cores;
    }
  }
}

TEST(DfxLayout, SaysHowMuchMemoryIsMissing) {
  hw::Machine machine = machine_with(1);
  machine.hbm.mib = 512;
  try {
    static_cast<void>(lay_out(gpt_shape("gpt2-medium"), machine, 0));
    FAIL() << "it does not fit";
  } catch (const hw::InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("hbm.mib: core 0 needs 770.2 MiB, 258.2 more"));
  }
}

TEST(DfxLayout, WantsPartialSumsForAHead) {
  hw::Machine machine = machine_with(1);
  machine.matrix.partial_sums = 3;
  EXPECT_THROW(static_cast<void>(lay_out(gpt_shape("gpt2"), machine, 0)), hw::InputError);
}

std::size_t count(const Pass& pass, Opcode op) {
  return static_cast<std::size_t>(
      std::count_if(pass.instructions.begin(), pass.instructions.end(),
                    [&](const hw::dfx::Instruction& i) { return i.op == op; }));
}

TEST(DfxPass, HasFourExchangesALayerAndNoneAlone) {
  const auto shape = gpt_shape("gpt2-medium");
  const Pass alone = PassMaker(shape, machine_with(1), 0).make({5}, 0, true);
  EXPECT_EQ(count(alone, Opcode::kSync), 0U);
  EXPECT_EQ(count(alone, Opcode::kConv1d), 24U * 6);
  EXPECT_EQ(count(alone, Opcode::kMaskedMm), 24U * 16);
  const Pass shared = PassMaker(shape, machine_with(4), 1).make({5}, 0, false);
  EXPECT_EQ(count(shared, Opcode::kSync), 24U * 4);
  EXPECT_EQ(count(shared, Opcode::kMaskedMm), 24U * 4);
  EXPECT_EQ(count(PassMaker(shape, machine_with(4), 1).make({5}, 0, true), Opcode::kSync),
            24U * 4 + 1)
      << "and one of the largest logits";
}

TEST(DfxPass, ReducesTwiceALayer) {
  hw::Machine machine = machine_with(4);
  machine.ring.collective = hw::dfx::Collective::kAllReduce;
  const Pass pass = PassMaker(gpt_shape("gpt2-medium"), machine, 1).make({5}, 0, false);
  EXPECT_EQ(count(pass, Opcode::kSync), 24U * 2);
}

TEST(DfxPass, RunsAsManyRowsAsThereArePartialSums) {
  hw::Machine machine = machine_with(1);
  EXPECT_EQ(PassMaker(gpt_shape("gpt2"), machine, 0).max_rows(), 1U);
  machine.dfx.prefill = hw::dfx::Prefill::kBatched;
  const PassMaker maker(gpt_shape("gpt2"), machine, 0);
  EXPECT_EQ(maker.max_rows(), 8U);
  const Pass pass = maker.make({1, 2, 3}, 4, true);
  EXPECT_EQ(count(pass, Opcode::kConv1d), 12U * 6) << "the rows share the weights";
  EXPECT_EQ(count(pass, Opcode::kMaskedMm), 3U * 12 * 12);
}

TEST(DfxLayout, APipelineDividesLayersAndTheVocabularyByTheirWeights) {
  for (const char* size : {"gpt2", "gpt2-medium", "gpt2-xl", "kjv"}) {
    const model::TextShape shape = gpt_shape(size);
    for (std::uint32_t cores = 1; cores <= 9; ++cores) {
      hw::Machine machine = machine_with(cores);
      machine.dfx.parallelism = hw::dfx::Parallelism::kPipelined;
      const Sizes sizes(shape, machine);
      const double layer = 12.0 * sizes.width * sizes.width,
                   head = 1.0 * sizes.width * sizes.vocabulary;
      const double share = (layer * shape.encoder.layers + head) / cores;
      std::uint32_t next = 0;
      for (std::uint32_t core = 0; core < cores; ++core) {
        const CoreLayout layout = lay_out(shape, machine, core, 2);
        const Part& part = layout.part;
        EXPECT_EQ(part.layers.begin, next);
        next = part.layers.end;
        EXPECT_EQ(part.heads.size(), shape.encoder.heads);
        const bool last = core + 1 == cores;
        EXPECT_EQ(part.vocabulary.size() * sizes.columns, last ? sizes.vocabulary : 0U);
        // Heads of the embedded network are padded.
        if (std::string(size) == "kjv") continue;
        EXPECT_EQ(layout.hbm.weight_bytes, 2 * (layer * part.layers.size() + (last ? head : 0.0)))
            << size << ' ' << core << " of " << cores;
        if (next < shape.encoder.layers)
          EXPECT_LT(std::abs(layer * part.layers.size() - share), layer * 1.001);
      }
      EXPECT_EQ(next, shape.encoder.layers);
    }
  }
}

TEST(DfxLayout, TextsHaveCachesOfTheirOwn) {
  const auto shape = gpt_shape("gpt2");
  const CoreLayout one = lay_out(shape, machine_with(2), 1),
                   three = lay_out(shape, machine_with(2), 1, 3);
  EXPECT_EQ(three.hbm.weight_bytes, one.hbm.weight_bytes);
  EXPECT_EQ(three.hbm.bytes - three.hbm.weight_bytes, 3 * (one.hbm.bytes - one.hbm.weight_bytes));
  EXPECT_EQ(three.hbm.layers[4].values - three.hbm.layers[4].keys, 3 * three.hbm.text_bytes);
}

TEST(DfxPass, TextsThatShareWeightsAreRows) {
  hw::Machine machine = machine_with(2);
  machine.dfx.batching = hw::dfx::Batching::kShared;
  EXPECT_EQ(PassMaker(gpt_shape("gpt2"), machine, 0).max_rows(), 1U) << "one text";
  const PassMaker maker(gpt_shape("gpt2"), machine, 0, 5);
  EXPECT_EQ(maker.max_rows(), 8U);
  const Pass pass = maker.make({{7, 3, 0}, {8, 3, 1}, {9, 3, 2}}, 0);
  EXPECT_EQ(count(pass, Opcode::kConv1d), 12U * 6);
  EXPECT_EQ(count(pass, Opcode::kMaskedMm), 3U * 12 * 6);
  EXPECT_EQ(count(pass, Opcode::kSync), 3U * (12 * 4 + 1)) << "each text has its exchanges";
  const auto head = std::find_if(pass.instructions.begin(), pass.instructions.end(),
                                 [](const auto& i) { return i.finds_largest; });
  ASSERT_NE(head, pass.instructions.end());
  EXPECT_EQ(head->rows, 3U) << "and the output vocabulary is read once";
}

TEST(DfxPass, AStageHasItsLayersAndHandsOn) {
  hw::Machine machine = machine_with(3);
  machine.dfx.parallelism = hw::dfx::Parallelism::kPipelined;
  std::size_t convs = 0;
  for (std::uint32_t core = 0; core < 3; ++core) {
    const Pass pass = PassMaker(gpt_shape("gpt2"), machine, core, 4)
                          .make({{7, 3, 0}, {8, 3, 1}, {9, 3, 2}, {9, 3, 3}}, 0);
    convs += count(pass, Opcode::kConv1d);
    EXPECT_EQ(count(pass, Opcode::kMm), 4 * (core == 2 ? 1 : 0) + count(pass, Opcode::kMaskedMm));
    // Four texts and two more steps until the last one has passed the last core, and four winners.
    EXPECT_EQ(count(pass, Opcode::kSync), 5U + 4);
  }
  EXPECT_EQ(convs, 4U * 12 * 6);
}

/// Element (k, n) of an operand, found by its description alone.
hw::Half tile_element(const std::vector<hw::Half>& memory, const hw::dfx::MatrixOperand& operand,
                      std::uint32_t k, std::uint32_t n) {
  constexpr std::uint32_t kDepth = 64, kLanes = 16;
  const std::uint32_t slice = n / kLanes, block = slice / operand.block * operand.block;
  const std::uint32_t in_block = std::min(operand.block, operand.slices - block);
  const std::uint64_t tile =
      std::uint64_t{block} * operand.k_tiles + k / kDepth * in_block + (slice - block);
  return memory[operand.address / 2 + tile * kDepth * kLanes + n % kLanes * kDepth + k % kDepth];
}

TEST(DfxImage, PutsEveryWeightWhereItIsRead) {
  model::TextShape shape = gpt_shape("kjv");
  shape.encoder.layers = 1;
  shape.encoder.width = 96;  // heads of 24, rounded up to 64
  shape.encoder.heads = 4;
  shape.encoder.hidden = 160;
  shape.vocabulary = 100;
  const model::Gpt gpt = model::seeded_gpt("odd", shape, 3);
  const hw::Machine machine = machine_with(3);
  std::uint32_t heads_seen = 0;
  for (std::uint32_t core = 0; core < 3; ++core) {
    const CoreLayout layout = lay_out(shape, machine, core);
    const std::vector<hw::Half> memory = hbm_image(gpt, machine, layout);
    const auto& at = layout.hbm.layers[0];
    const auto& layer = gpt.layers[0];
    for (std::uint32_t head = layout.part.heads.begin; head < layout.part.heads.end; ++head) {
      ++heads_seen;
      for (std::uint32_t k = 0; k < 128; ++k) {
        for (std::uint32_t i = 0; i < 64; ++i) {
          const hw::Half expected =
              k < 96 && i < 24 ? layer.key.weight[k * 96 + head * 24 + i] : hw::kHalfZero;
          ASSERT_EQ(tile_element(memory, at.key, k, (head - layout.part.heads.begin) * 64 + i),
                    expected);
        }
      }
    }
    for (std::uint32_t k = 0; k < 4 * 64; ++k) {
      for (std::uint32_t n = 0; n < layout.part.projected.size() * 16; ++n) {
        const std::uint32_t column = layout.part.projected.begin * 16 + n;
        const hw::Half expected = k % 64 < 24 && column < 96
                                      ? layer.proj.weight[(k / 64 * 24 + k % 64) * 96 + column]
                                      : hw::kHalfZero;
        ASSERT_EQ(tile_element(memory, at.projection, k, n), expected) << k << ' ' << n;
      }
    }
    for (std::uint32_t k = 0; k < 96; ++k) {
      for (std::uint32_t n = 0; n < layout.part.vocabulary.size() * 16; ++n) {
        const std::uint32_t word = layout.part.vocabulary.begin * 16 + n;
        const hw::Half expected = word < 100 ? gpt.word[word * 96 + k] : hw::kHalfZero;
        ASSERT_EQ(tile_element(memory, layout.hbm.lm_head, k, n), expected);
      }
    }
  }
  EXPECT_EQ(heads_seen, 4U);
}

}  // namespace
}  // namespace systole::mapper::dfx

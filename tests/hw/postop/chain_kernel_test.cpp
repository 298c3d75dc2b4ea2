#include "hw/postop/chain_kernel.h"

#include <gtest/gtest.h>

#include "hw/engines.h"
#include "tests/hw/postop/random_tile.h"
#include "tests/hw/postop/stage_sketch.h"

namespace systole::hw {
namespace {

using test::any_int32;
using test::pick;
using test::Random;
using test::RandomTile;
using test::stage;
using test::with_operand;

using Words = std::vector<std::int32_t>;

/// A tile of s32 results with its parameters, run as a whole or in tiles of columns.
struct ColumnTiles {
  std::size_t rows, cols;
  Words accumulator, parameters;
  std::vector<std::size_t> cuts;  ///< the columns at which tiles begin, and the end

  ColumnTiles(std::size_t words, Random& random)
      : rows(static_cast<std::size_t>(pick(random, 1, 9))),
        cols(static_cast<std::size_t>(pick(random, 1, 600))) {
    for (std::size_t i = 0; i < rows * cols; ++i) accumulator.push_back(any_int32(random));
    for (std::size_t i = 0; i < words * cols; ++i) parameters.push_back(any_int32(random));
    for (std::size_t at = 0; at < cols; at += static_cast<std::size_t>(pick(random, 1, 300))) {
      cuts.push_back(at);
    }
    cuts.push_back(cols);
  }

  /// `statistics` is read or written; tiles after the first continue.
  [[nodiscard]] Words run(const Chain& chain, const std::vector<std::size_t>& at,
                          std::vector<std::uint32_t>& statistics) const {
    Words out(rows * cols);
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      Words block;
      for (std::size_t word = 0; word < parameter_words(chain); ++word) {
        block.insert(block.end(),
                     parameters.begin() + static_cast<std::ptrdiff_t>(word * cols + at[i]),
                     parameters.begin() + static_cast<std::ptrdiff_t>(word * cols + at[i + 1]));
      }
      ChainOperands operands;
      operands.accumulator = accumulator.data() + at[i];
      operands.accumulator_pitch = cols;
      operands.parameters = block.data();
      operands.row_statistics = statistics.data();
      operands.accumulate_statistics = i != 0;
      operands.out = out.data() + at[i];
      operands.out_pitch = cols * sizeof(std::int32_t);
      operands.rows = rows;
      operands.cols = at[i + 1] - at[i];
      apply_chain(chain, operands);
    }
    return out;
  }
};

TEST(ChainKernel, SideOutputsOfColumnTilesAreThoseOfTheWholeRow) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    Chain chain{{stage(StageOp::kClamp)}, DType::kS32};
    chain.stages[0].imm = {any_int32(random) >> 1, 0};
    chain.stages[0].imm[1] = pick(random, chain.stages[0].imm[0], 2147483647);
    chain.stages[0].side = static_cast<Reduction>(1 + i % (kReductions - 1));
    const ColumnTiles tiles(0, random);
    // What stood there before does not matter.
    std::vector<std::uint32_t> whole(tiles.rows * statistics_words(chain), 0xdeadbeef);
    std::vector<std::uint32_t> cut = whole;
    const Words expected = tiles.run(chain, {0, tiles.cols}, whole);
    ASSERT_EQ(tiles.run(chain, tiles.cuts, cut), expected);
    ASSERT_EQ(cut, whole) << name_of(chain.stages[0].side) << " in " << tiles.cuts.size() - 1;
  }
}

TEST(ChainKernel, LayerNormInPartsIsTheWholeOne) {
  Random random(6);
  std::size_t parts = 0;
  for (int i = 0; i < 200; ++i) {
    const Chain whole{{test::random_stage(random, StageOp::kLayerNorm)}, DType::kS32};
    const ColumnTiles tiles(2, random);
    Chain sums{{stage(StageOp::kAdd)}, DType::kS32};
    sums.stages[0].side = Reduction::kSumSquares;
    Chain apply = whole;
    apply.stages[0].op = StageOp::kLayerNormApply;
    apply.stages[0].imm[4] = static_cast<std::int64_t>(tiles.cols);
    std::vector<std::uint32_t> statistics(tiles.rows * statistics_words(sums));
    (void)tiles.run(sums, tiles.cuts, statistics);
    std::vector<std::uint32_t> none;
    ASSERT_EQ(tiles.run(apply, tiles.cuts, statistics), tiles.run(whole, {0, tiles.cols}, none));
    parts += tiles.cuts.size() - 1;
  }
  EXPECT_GT(parts, 300U);
}

/// Runs a chain to s32 over rows of three columns.
Words run_rows(const Chain& chain, const Words& in, std::size_t valid_cols = 0) {
  Words out(in.size());
  ChainOperands operands;
  operands.accumulator = in.data();
  operands.accumulator_pitch = 3;
  operands.out = out.data();
  operands.out_pitch = 3 * sizeof(std::int32_t);
  operands.rows = in.size() / 3;
  operands.cols = 3;
  operands.valid_cols = valid_cols;
  apply_chain(chain, operands);
  return out;
}

TEST(ChainKernel, SavedOperandIsTheValueInFrontOfTheChain) {
  Stage twice = stage(StageOp::kAdd, {0, 0, 0, 0, 1000});
  Stage product = with_operand(StageOp::kMul, Operand::kSaved);
  product.imm = {0, -100000, 100000};
  const Stage less = with_operand(StageOp::kSub, Operand::kSaved);
  // (x + 1000) x - x, whatever the stages before made of x.
  EXPECT_EQ(run_rows({{twice, product, less}, DType::kS32}, {1, -2, 3, 0, 10, -100}),
            (Words{1000, -1994, 3006, 0, 10090, -89900}));
}

TEST(ChainKernel, CausalMaskKeepsOneColumnMoreInEachRow) {
  const Chain chain{{stage(StageOp::kMask, {-7})}, DType::kS32};
  const Words in = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(run_rows(chain, in, 1), (Words{1, -7, -7, 4, 5, -7, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(run_rows(chain, in, 2), (Words{1, 2, -7, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(run_rows(chain, in), in);
}

TEST(ChainKernel, RefusesRowsLongerThanTheStatisticsHold) {
  const Chain chain{{stage(StageOp::kLayerNorm)}, DType::kS8};
  ChainOperands operands;
  operands.rows = 1;
  operands.cols = kLayerNormMaxLength + 1;
  EXPECT_THROW(apply_chain(chain, operands), std::invalid_argument);
}

/// The s32 result of a tile, and what it leaves in the row statistics.
using Outcome = std::pair<Words, std::vector<std::uint32_t>>;

template <typename Apply>
Outcome outcome_of(const Chain& chain, RandomTile tile, std::size_t elements, Apply apply) {
  Words out(elements);
  ChainOperands operands = tile.operands();
  operands.out = out.data();
  operands.out_pitch = (transposes(chain) ? operands.rows : operands.cols) * bytes_of(chain.out);
  apply(operands);
  return {out, tile.statistics()};
}

TEST(PostopModel, TakesNoKernelForThatOfASimilarChain) {
  // Chains that differ in one field, in turns: a stage composed once serves its own chain alone.
  Stage base = with_operand(StageOp::kAdd, Operand::kTensor);
  base.imm = {3, 1, -100, 100};
  base.tensor = DType::kS8;
  std::vector<Chain> chains(8, Chain{{base, stage(StageOp::kClamp, {-50, 50})}, DType::kS32});
  chains[1].stages[0].op = StageOp::kSub;
  chains[2].stages[0].operand = Operand::kSaved;
  chains[3].stages[0].rounding = Rounding::kFloor;
  chains[4].stages[0].tensor = DType::kU8;
  chains[5].stages[0].side = Reduction::kRowSum;
  chains[6].stages[0].imm[0] = 5;
  chains[7].out = DType::kU8;
  PostopModel model(16);
  Random random(9);
  const RandomTile tile(chains[5], 5, 40, random);  // with all that the others need
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < chains.size(); ++i) {
      const Chain& chain = chains[i * 3 % chains.size()];
      EXPECT_EQ(
          outcome_of(chain, tile, 200, [&](const ChainOperands& o) { model.apply(chain, o); }),
          outcome_of(chain, tile, 200, [&](const ChainOperands& o) { apply_chain(chain, o); }));
    }
  }
}

TEST(PostopModel, DoesNotDependOnTheTilesBefore) {
  // One kernel on tiles of many shapes, operands and parameters.
  Random random(10);
  for (int i = 0; i < 20; ++i) {
    const Chain chain = test::random_chain(random, 8);
    PostopModel model(16);
    for (int j = 0; j < 6; ++j) {
      const std::size_t cols = test::random_cols(chain, random);
      const auto rows = static_cast<std::size_t>(pick(random, 1, 12));
      const RandomTile tile(chain, rows, cols, random);
      EXPECT_EQ(outcome_of(chain, tile, rows * cols,
                           [&](const ChainOperands& o) { model.apply(chain, o); }),
                outcome_of(chain, tile, rows * cols,
                           [&](const ChainOperands& o) { apply_chain(chain, o); }));
    }
  }
}

}  // namespace
}  // namespace systole::hw

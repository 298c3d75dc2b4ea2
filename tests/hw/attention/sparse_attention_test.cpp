#include "hw/attention/sparse_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "hw/kernel/gemm.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::hw {
namespace {

using Outputs = std::vector<std::int32_t>;

/// Q, K and V of a head, rows padded with bytes that must not matter.
struct Tensors {
  std::vector<std::int8_t> q, k, v;
  AttentionOperands operands;

  Tensors(std::size_t queries, std::size_t keys, std::size_t dim, std::size_t value_dim,
          std::size_t padding, std::mt19937& random)
      : q(queries * (dim + padding)), k(keys * (dim + padding)), v(keys * (value_dim + padding)) {
    std::uniform_int_distribution<int> byte(-128, 127);
    for (auto* tensor : {&q, &k, &v}) {
      for (auto& value : *tensor) value = static_cast<std::int8_t>(byte(random));
    }
    operands = {q.data(), dim + padding,       k.data(), dim + padding,
                v.data(), value_dim + padding, dim,      value_dim};
  }
};

SoftmaxConstants constants_for(std::size_t dim) {
  // Scores of random operands then span a few units of the exponent.
  return make_softmax_constants(1.0 / (4000.0 * std::sqrt(static_cast<double>(dim))));
}

/// The dense product with a mask, which knows nothing of columns or engines.
Outputs masked_reference(const HeadMask& mask, const AttentionOperands& operands,
                         const SoftmaxConstants& constants) {
  Outputs scores(mask.queries * mask.keys);
  GemmArgs sddmm;
  sddmm.a = operands.q;
  sddmm.lda = operands.q_pitch;
  sddmm.b = operands.k;
  sddmm.ldb = operands.k_pitch;
  sddmm.b_transposed = true;
  sddmm.c = scores.data();
  sddmm.ldc = mask.keys;
  sddmm.m = mask.queries;
  sddmm.n = mask.keys;
  sddmm.k = operands.dim;
  gemm(sddmm);

  std::vector<std::uint8_t> codes(scores.size());
  std::vector<std::uint32_t> divisor;
  for (std::size_t q = 0; q < mask.queries; ++q) {
    const std::size_t row = q * mask.keys;
    divisor.push_back(softmax_row(scores.data() + row, mask.keep.data() + row, mask.keys, constants,
                                  codes.data() + row));
  }
  Outputs outputs(mask.queries * operands.value_dim);
  GemmArgs spmm;
  spmm.a = codes.data();
  spmm.lda = mask.keys;
  spmm.a_unsigned = true;
  spmm.b = operands.v;
  spmm.ldb = operands.v_pitch;
  spmm.c = outputs.data();
  spmm.ldc = operands.value_dim;
  spmm.m = mask.queries;
  spmm.n = operands.value_dim;
  spmm.k = mask.keys;
  gemm(spmm);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] =
        static_cast<std::int32_t>(deferred_divide(outputs[i], divisor[i / operands.value_dim]));
  }
  return outputs;
}

std::vector<std::uint32_t> shuffled(std::size_t count, std::mt19937& random) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

/// The head as lines of the array compute it, one line after the other in random order.
Outputs by_lines(const SparseHead& head, const AttentionOperands& operands,
                 const SoftmaxConstants& constants, const Machine::Attention& array,
                 std::mt19937& random) {
  const LineSplit lines = allocate_lines(head, array);
  auto scores = make_split_cells<std::int32_t>(head);
  for (const std::uint32_t line : shuffled(lines.dense, random)) {
    for (const std::uint32_t column : shuffled(head.dense_columns.size(), random)) {
      score_dense_column(head, operands, column, line, lines.dense, scores);
    }
  }
  const LineSchedule columns = sddmm_column_schedule(head, operands.dim, array);
  for (const std::uint32_t line : shuffled(lines.sparse, random)) {
    for (const std::uint32_t column : columns.items[line]) {
      score_sparse_column(head, operands, column, scores);
    }
  }
  const SparseRows rows = sparse_rows(head);
  const AttentionCodes codes = softmax_kept_cells(head, rows, scores, constants);

  const std::size_t macs = array.macs_per_line;
  const std::size_t groups = (operands.value_dim + macs - 1) / macs;
  const auto group_of = [&](std::size_t item) {
    const std::size_t first = item % groups * macs;
    return OutputGroup{item / groups, first, std::min(macs, operands.value_dim - first)};
  };
  Outputs dense(head.queries * operands.value_dim, 0);
  Outputs sparse = dense;
  const auto sums = [&](Outputs& of, OutputGroup group) {
    return of.data() + group.query * operands.value_dim + group.first;
  };
  for (const std::uint32_t line : shuffled(lines.dense, random)) {
    for (std::size_t item = line; item < head.queries * groups; item += lines.dense) {
      const OutputGroup group = group_of(item);
      accumulate_dense_group(head, operands, codes, group, sums(dense, group));
    }
  }
  const LineSchedule items = spmm_group_schedule(head, operands.value_dim, array);
  for (const std::uint32_t line : shuffled(lines.sparse, random)) {
    for (const std::uint32_t item : items.items[line]) {
      const OutputGroup group = group_of(item);
      accumulate_sparse_group(rows, operands, codes, group, sums(sparse, group));
    }
  }
  for (std::size_t i = 0; i < dense.size(); ++i) {
    const std::uint32_t divisor = codes.divisor[i / operands.value_dim];
    dense[i] = static_cast<std::int32_t>(deferred_divide(dense[i] + sparse[i], divisor));
  }
  return dense;
}

TEST(SparseAttention, EqualsTheMaskedProductForAnySplitOrderAndLines) {
  std::mt19937 random(1);
  int settings = 0, reached = 0;
  for (int round = 0; round < 400; ++round) {
    const HeadMask mask = random_mask(random, 40);
    const std::size_t dim = random_size(random, 1, 40);
    const Tensors tensors(mask.queries, mask.keys, dim, random_size(random, 1, 40),
                          random_size(random, 0, 3), random);
    const SoftmaxConstants constants = constants_for(dim);
    const Outputs expected = masked_reference(mask, tensors.operands, constants);
    for (int variant = 0; variant < 3; ++variant) {
      const SparseHead head = split_anywhere(mask, random);
      Machine::Attention array;
      array.lines = static_cast<std::uint32_t>(random_size(random, 2, 70));
      array.macs_per_line = static_cast<std::uint32_t>(random_size(random, 1, 9));
      ASSERT_EQ(sparse_attention(head, tensors.operands, constants), expected) << round;
      ASSERT_EQ(by_lines(head, tensors.operands, constants, array, random), expected) << round;
      ++settings;
      reached += !head.dense_columns.empty() && head.sparse_kept() > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(settings, 1000);
  EXPECT_GT(reached, 600);  // both engines active
}

TEST(SparseAttention, AveragesTheKeptValues) {
  // Two keys of equal score, one global: codes of 255 each, V = 10 and 20, with 8 fraction bits.
  const HeadMask mask{1, 3, {1, 1, 0}};
  const std::int8_t q[] = {3}, k[] = {5, 5, 100}, v[] = {10, 20, 127};
  const AttentionOperands operands{q, 1, k, 1, v, 1, 1, 1};
  for (const auto& global : {std::vector<std::uint16_t>{}, {0}, {0, 2}, {0, 1, 2}}) {
    EXPECT_EQ(sparse_attention(split(mask, global), operands, constants_for(1)), Outputs{15 * 256});
  }
}

TEST(SparseAttention, SingleKeptKeyGivesItsValue) {
  const HeadMask mask{2, 2, {0, 1, 1, 0}};
  const std::int8_t q[] = {-128, 127}, k[] = {127, -128}, v[] = {-128, 1, 127, -1};
  const AttentionOperands operands{q, 1, k, 1, v, 2, 1, 2};
  EXPECT_EQ(sparse_attention(split(mask, {1}), operands, constants_for(1)),
            (Outputs{127 * 256, -256, -128 * 256, 256}));
}

TEST(SparseAttention, AQueryWithoutKeptKeysGivesZeros) {
  std::mt19937 random(2);
  const HeadMask mask{2, 3, {0, 0, 0, 1, 1, 1}};
  const Tensors tensors(2, 3, 4, 5, 0, random);
  const Outputs outputs = sparse_attention(split(mask, {1}), tensors.operands, constants_for(4));
  EXPECT_EQ(Outputs(outputs.begin(), outputs.begin() + 5), Outputs(5, 0));
}

TEST(SparseAttention, SoftmaxDropsPrunedCellsOfTheDenseBlock) {
  // The pruned cell has the highest score; it enters neither the maximum nor the sum.
  const HeadMask mask{1, 2, {0, 1}};
  const SparseHead head = split(mask, {0});
  const SplitCells<std::int32_t> scores{{1 << 20}, {-5}};
  const AttentionCodes codes =
      softmax_kept_cells(head, sparse_rows(head), scores, constants_for(1));
  EXPECT_EQ(codes.cells.dense, std::vector<std::uint8_t>{0});
  EXPECT_EQ(codes.cells.sparse, std::vector<std::uint8_t>{255});
  EXPECT_EQ(codes.divisor, std::vector<std::uint32_t>{255});
}

TEST(SparseHead, CountsItsCellsAndWalksItsRows) {
  const HeadMask mask{3, 4, {1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1}};
  const SparseHead head = split_in_order(mask, {1}, {3, 0, 2});
  EXPECT_EQ(head.dense_cells(), 3U);
  EXPECT_EQ(head.dense_kept(), 2U);
  EXPECT_EQ(head.sparse_kept(), 3U);
  EXPECT_EQ(head.kept(), 5U);
  EXPECT_EQ(head.column_kept(0), 2U);
  EXPECT_EQ(head.column_kept(2), 0U);
  const SparseRows rows = sparse_rows(head);
  EXPECT_EQ(rows.pointers, (std::vector<std::uint32_t>{0, 2, 2, 3}));
  EXPECT_EQ(rows.keys, (std::vector<std::uint16_t>{3, 0, 3}));
  EXPECT_EQ(rows.cells, (std::vector<std::uint32_t>{0, 2, 1}));
}

TEST(SparseHead, ATileKeepsKeysAndColumnsAndRenumbersItsQueries) {
  // Columns 1 (dense), 3, 0 and 2; the tile takes queries 1 and 2 of 4.
  const HeadMask mask{4, 4, {1, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0}};
  const SparseHead tile = query_tile(split_in_order(mask, {1}, {3, 0, 2}), 1, 2);
  EXPECT_NO_THROW(check_sparse_head(tile));
  EXPECT_EQ(tile.queries, 2U);
  EXPECT_EQ(tile.keys, 4U);
  EXPECT_EQ(tile.dense_columns, (std::vector<std::uint16_t>{1}));
  EXPECT_EQ(tile.dense_keep, (std::vector<bool>{false, true}));
  EXPECT_EQ(tile.sparse_columns, (std::vector<std::uint16_t>{3, 0, 2}));
  EXPECT_EQ(tile.column_pointers, (std::vector<std::uint32_t>{0, 2, 2, 2}));
  EXPECT_EQ(tile.row_indices, (std::vector<std::uint16_t>{0, 1}));
}

TEST(SparseHead, ATileLiesWithinTheHead) {
  const SparseHead head = split({2, 1, {1, 1}}, {0});
  EXPECT_EQ(query_tile(head, 2, 0).queries, 0U);
  EXPECT_THROW((void)query_tile(head, 1, 2), std::invalid_argument);
  EXPECT_THROW((void)query_tile(head, 3, 0), std::invalid_argument);
  EXPECT_THROW((void)query_tile(head, 1, ~std::size_t{0}), std::invalid_argument);
}

TEST(SparseAttention, TilesGiveTheOutputsOfTheWhole) {
  std::mt19937 random(4);
  int tiles = 0;
  for (int round = 0; round < 200; ++round) {
    const HeadMask mask = random_mask(random, 30);
    const SparseHead head = split_anywhere(mask, random);
    const Tensors tensors(mask.queries, mask.keys, 7, 5, 1, random);
    const Outputs whole = sparse_attention(head, tensors.operands, constants_for(7));
    Outputs joined;
    for (std::size_t first = 0; first < mask.queries; ++tiles) {
      const std::size_t count = random_size(random, 1, mask.queries - first);
      const SparseHead tile = query_tile(head, first, count);
      check_sparse_head(tile);
      AttentionOperands operands = tensors.operands;
      operands.q += first * operands.q_pitch;
      const Outputs outputs = sparse_attention(tile, operands, constants_for(7));
      joined.insert(joined.end(), outputs.begin(), outputs.end());
      first += count;
    }
    ASSERT_EQ(joined, whole) << round;
  }
  EXPECT_GT(tiles, 400);
}

TEST(SparseHead, CheckRefusesListsThatContradictEachOther) {
  const HeadMask mask{3, 3, {1, 1, 0, 1, 0, 1, 1, 0, 1}};
  const SparseHead good = split(mask, {1});
  EXPECT_NO_THROW(check_sparse_head(good));
  const auto refused = [&](auto change) {
    SparseHead head = good;
    change(head);
    EXPECT_THROW(check_sparse_head(head), std::invalid_argument);
  };
  refused([](SparseHead& head) { head.queries = 65536; });
  refused([](SparseHead& head) { head.keys = 4; });
  refused([](SparseHead& head) { head.dense_keep.pop_back(); });
  refused([](SparseHead& head) { head.dense_columns[0] = 2; });
  refused([](SparseHead& head) { head.sparse_columns[0] = 3; });
  refused([](SparseHead& head) { head.column_pointers.pop_back(); });
  refused([](SparseHead& head) { head.column_pointers[0] = 1; });
  refused([](SparseHead& head) { head.column_pointers[1] = 6; });
  refused([](SparseHead& head) { head.row_indices.push_back(2); });
  refused([](SparseHead& head) { head.row_indices[2] = 3; });
  refused([](SparseHead& head) { head.row_indices[1] = 0; });
}

TEST(SparseAttention, RefusesOperandsThatCannotBe) {
  std::mt19937 random(3);
  const SparseHead head = split({1, 1, {1}}, {0});
  const Tensors tensors(1, 1, 2, 2, 0, random);
  const auto refused = [&](auto change, SoftmaxMode mode = SoftmaxMode::kDeferred) {
    AttentionOperands operands = tensors.operands;
    change(operands);
    SoftmaxOptions options;
    options.mode = mode;
    EXPECT_THROW((void)sparse_attention(head, operands, make_softmax_constants(0.01, options)),
                 std::invalid_argument);
  };
  refused([](AttentionOperands& operands) { operands.dim = 0; });
  refused([](AttentionOperands& operands) { operands.value_dim = 0; });
  refused([](AttentionOperands& operands) { operands.dim = operands.q_pitch = 65536; });
  refused([](AttentionOperands& operands) { operands.q_pitch = 1; });
  refused([](AttentionOperands& operands) { operands.k_pitch = 1; });
  refused([](AttentionOperands& operands) { operands.v_pitch = 1; });
  refused([](AttentionOperands&) {}, SoftmaxMode::kNormalisedRound);
  SparseHead broken = head;
  broken.dense_columns[0] = 1;
  EXPECT_THROW((void)sparse_attention(broken, tensors.operands, constants_for(2)),
               std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw

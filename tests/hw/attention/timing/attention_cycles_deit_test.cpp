/// The cycles of tests/hw/attention/timing/deit_tiny_mask.h.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "hw/attention/timing/attention_schedule.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tests/hw/attention/timing/deit_tiny_mask.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kLeastCycles = 18600;  // SDDMM and SpMM: 2 * kept * dim / 512

const Machine::Attention kColumnPerLine = engines();
const Machine::Attention kBroadcast = engines(64, 8, SparserMapping::kBroadcast);

std::uint64_t sddmm(const std::vector<SparseHead>& heads, const Machine::Attention& array) {
  std::uint64_t cycles = 0;
  for (const SparseHead& head : heads) cycles += sddmm_cycles(head, kDim, array).total();
  return cycles;
}

std::uint64_t spmm(const std::vector<SparseHead>& heads) {
  std::uint64_t cycles = 0;
  for (const SparseHead& head : heads) cycles += spmm_cycles(head, kDim, kColumnPerLine).total();
  return cycles;
}

TEST_F(DeitTinyMask, SplitsAsPublished) {
  std::size_t global = 0, cells = 0, dense_kept = 0, sparse_kept = 0, pointers = 0;
  for (const SparseHead& head : split_by_threshold(kThreshold)) {
    check_sparse_head(head);
    global += head.dense_columns.size();
    cells += head.dense_cells();
    dense_kept += head.dense_kept();
    sparse_kept += head.sparse_kept();
    pointers += head.column_pointers.size();
  }
  EXPECT_EQ(global, 274U);
  EXPECT_EQ(cells, 53978U);
  EXPECT_EQ(dense_kept, 34508U);
  EXPECT_EQ(sparse_kept, 39891U);
  EXPECT_EQ(sparse_kept + 2 * pointers, 53599U);  // bytes: a row index fits 1, a pointer 2
}

TEST_F(DeitTinyMask, SddmmCyclesByMapping) {
  const auto reordered = split_by_threshold(kThreshold);
  EXPECT_EQ(sddmm(reordered, kColumnPerLine), 13656U);
  EXPECT_EQ(sddmm(reordered, kBroadcast), 57776U);
  const auto plain = split_by_threshold(kTokens);
  EXPECT_EQ(sddmm(plain, kColumnPerLine), 56736U);  // 197 kept cells of CLS, 8 cycles, 36 heads
  EXPECT_EQ(sddmm(plain, kBroadcast), 60064U);
}

TEST_F(DeitTinyMask, SddmmCyclesWithTheBestNumberOfGlobalColumns) {
  const auto heads = split_by_cost();
  EXPECT_EQ(sddmm(heads, kColumnPerLine), 11080U);
  std::size_t global = 0;
  for (const SparseHead& head : heads) global += head.dense_columns.size();
  EXPECT_EQ(global, 175U);
}

TEST_F(DeitTinyMask, NoSplitBeatsTheMacs) {
  for (const auto& heads :
       {split_by_threshold(kThreshold), split_by_threshold(kTokens), split_by_cost()}) {
    EXPECT_GE(sddmm(heads, kColumnPerLine) + spmm(heads), kLeastCycles);
  }
}

TEST_F(DeitTinyMask, SpmmCycles) {
  EXPECT_EQ(spmm(split_by_threshold(kThreshold)), 13401U);
  EXPECT_EQ(spmm(split_by_threshold(kTokens)), 11001U);
  EXPECT_EQ(spmm(split_by_cost()), 11654U);
}

TEST_F(DeitTinyMask, ConflictsByBanksAndPorts) {
  const auto heads = split_by_threshold(kThreshold);
  const auto cycles = [&](std::uint32_t banks, std::uint32_t ports, std::uint32_t line_rows) {
    Machine::Attention attention = engines();
    attention.banks = banks;
    attention.ports = ports;
    attention.line_rows = line_rows;
    std::pair<std::uint64_t, std::uint64_t> sum;
    for (const SparseHead& head : heads) {
      sum.first += schedule_sddmm(head, kDim, attention).cycles;
      sum.second += schedule_spmm(head, kDim, kDim, attention).cycles;
    }
    return sum;
  };
  // Those of tests/hw/attention/timing/attention_reference.h on all heads.
  using Cycles = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(cycles(256, 64, 2), Cycles(13656, 13401));  // none
  EXPECT_EQ(cycles(64, 2, 2), Cycles(13656, 13401));
  EXPECT_EQ(cycles(64, 1, 4), Cycles(13688, 13401));
  EXPECT_EQ(cycles(64, 1, 2), Cycles(16728, 13401));
  EXPECT_EQ(cycles(16, 1, 2), Cycles(38328, 18598));
}

}  // namespace
}  // namespace systole::hw

#include "hw/machine/matrix_unit.h"

#include <gtest/gtest.h>

#include <vector>

namespace systole::hw {
namespace {

/// Slice by slice, as the unit works: when does each enter?
std::uint64_t issue_step_by_step(const MatrixUnit& unit, std::uint64_t k_tiles,
                                 std::uint64_t slices) {
  std::uint64_t now = 0;  // the next cycle that is free
  for (std::uint64_t first = 0; first < slices; first += unit.partial_sums) {
    const std::uint64_t count = std::min<std::uint64_t>(unit.partial_sums, slices - first);
    std::vector<std::uint64_t> back(count, 0);  // when the slice's sum is back
    for (std::uint64_t k = 0; k < k_tiles; ++k) {
      for (std::uint64_t slice = 0; slice < count; ++slice) {
        if (k > 0) now = std::max(now, back[slice]);
        back[slice] = now + unit.add;
        ++now;
      }
    }
  }
  return now;
}

TEST(MatrixUnit, IssuesAsTheSumsComeBack) {
  for (const std::uint32_t add : {1U, 4U, 11U}) {
    for (const std::uint32_t sums : {1U, 4U, 10U, 11U, 12U, 16U}) {
      const MatrixUnit unit{64, 16, 6, add, sums};
      for (std::uint64_t k_tiles = 0; k_tiles < 6; ++k_tiles) {
        for (std::uint64_t slices = 0; slices < 50; ++slices) {
          const std::uint64_t issue = matrix_issue_cycles(unit, k_tiles, slices);
          ASSERT_EQ(issue, issue_step_by_step(unit, k_tiles, slices))
              << add << ' ' << sums << ' ' << k_tiles << ' ' << slices;
          const std::uint64_t rest = slices % sums;
          const bool no_block_waits = (slices < sums || sums >= add) && (rest == 0 || rest >= add);
          ASSERT_EQ(issue == k_tiles * slices, k_tiles <= 1 || slices == 0 || no_block_waits)
              << add << ' ' << sums << ' ' << k_tiles << ' ' << slices;
        }
      }
    }
  }
}

TEST(MatrixUnit, FillsInTheCyclesOfMultiplierTreeAndSum) {
  EXPECT_EQ(fill_cycles(MatrixUnit{}), 83U);
  EXPECT_EQ(fill_cycles(MatrixUnit{16, 64, 6, 11, 16}), 61U);
  EXPECT_EQ(fill_cycles(MatrixUnit{1, 1, 3, 2, 1}), 5U);
}

TEST(MatrixUnit, CountsPartsOfTilesAsWhole) {
  const MatrixUnit unit;
  EXPECT_EQ(matrix_cycles(unit, 1024, 1024), 1024 + 83U);
  EXPECT_EQ(matrix_cycles(unit, 1024, 4096), 4096 + 83U);
  EXPECT_EQ(matrix_cycles(unit, 65, 17), 11 + 2 + 83U);
  EXPECT_EQ(matrix_cycles(unit, 1, 1), 1 + 83U);
  EXPECT_EQ(matrix_cycles(unit, 0, 16), 0U);
  EXPECT_EQ(matrix_cycles(unit, 64, 0), 0U);
  // Four partial sums: a tile's four slices wait for the adder.
  EXPECT_EQ(matrix_cycles(MatrixUnit{64, 16, 6, 11, 4}, 1024, 64), 15 * 11 + 4 + 83U);
}

}  // namespace
}  // namespace systole::hw

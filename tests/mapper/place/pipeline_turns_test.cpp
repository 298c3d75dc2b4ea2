#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mapper/place/pipeline.h"
#include "support/random/random_machine.h"

/// The order in which tiles of a pipeline are issued.
namespace systole::mapper {
namespace {

using Tiles = std::vector<std::vector<Tile>>;

/// Tiles of `rows` x `cols` of a result, those below each other first if it is n-outer.
std::vector<Tile> cut(std::uint32_t m, std::uint32_t rows, std::uint32_t n = 1,
                      std::uint32_t cols = 1, bool n_outer = false) {
  std::vector<Tile> tiles;
  for (std::uint32_t row = 0; row < m; row += rows) {
    for (std::uint32_t col = 0; col < n; col += cols) {
      tiles.push_back({row, col, std::min(rows, m - row), std::min(cols, n - col)});
    }
  }
  if (n_outer) {
    std::stable_sort(tiles.begin(), tiles.end(),
                     [](const Tile& a, const Tile& b) { return a.col < b.col; });
  }
  return tiles;
}

/// A letter per group, the number of its tile: "a0 a1 b0".
std::string text_of(const std::vector<Turn>& turns) {
  std::string text;
  for (const Turn& turn : turns) {
    if (!text.empty()) text += ' ';
    text += static_cast<char>('a' + turn.group) + std::to_string(turn.tile);
  }
  return text;
}
std::string order(const std::vector<std::uint32_t>& levels, const Tiles& tiles) {
  return text_of(turns_of({3, levels, 0, 0}, tiles));
}

TEST(TurnsOf, AGroupAloneKeepsItsOrder) { EXPECT_EQ(order({0}, {cut(6, 2)}), "a0 a1 a2"); }

TEST(TurnsOf, TilesFollowOneTurnAfterTheirRows) {
  EXPECT_EQ(order({0, 1}, {cut(8, 2), cut(8, 2)}), "a0 a1 b0 a2 b1 a3 b2 b3");
  EXPECT_EQ(order({0, 1, 2}, {cut(8, 2), cut(8, 2), cut(8, 2)}),
            "a0 a1 b0 a2 b1 c0 a3 b2 c1 b3 c2 c3");
}

TEST(TurnsOf, TilesOfOtherHeightsWaitForAllTheirRows) {
  EXPECT_EQ(order({0, 1}, {cut(8, 2), cut(8, 4)}), "a0 a1 a2 b0 a3 b1");
  EXPECT_EQ(order({0, 1}, {cut(8, 4), cut(8, 2)}), "a0 a1 b0 b1 b2 b3");
  EXPECT_EQ(order({0, 1}, {cut(8, 3), cut(8, 2)}), "a0 a1 b0 a2 b1 b2 b3");
}

TEST(TurnsOf, HeadsFollowEachOtherWithoutAGap) {
  EXPECT_EQ(order({0, 1, 0, 1}, {cut(4, 2), cut(4, 2), cut(4, 2), cut(4, 2)}),
            "a0 a1 b0 c0 b1 c1 d0 d1");
  EXPECT_EQ(order({0, 1, 0, 1}, {cut(4, 4), cut(4, 4), cut(4, 4), cut(4, 4)}), "a0 c0 b0 d0");
}

/// Heads in turn for each row tile, then the chain after them.
Pipeline joined(std::uint32_t heads, std::uint32_t after) {
  Pipeline pipeline;
  pipeline.heads = heads;
  pipeline.by_rows = true;
  for (std::uint32_t group = 0; group < 2 * heads; ++group) pipeline.levels.push_back(group % 2);
  for (std::uint32_t group = 0; group < after; ++group) pipeline.levels.push_back(2 + group);
  return pipeline;
}

TEST(TurnsOf, ARowTilePassesAllHeadsBeforeTheNextOne) {
  const std::vector<Tile> tiles = cut(6, 2);
  EXPECT_EQ(text_of(turns_of(joined(2, 0), {tiles, tiles, tiles, tiles})),
            "a0 c0 b0 a1 d0 c1 b1 a2 d1 c2 b2 d2");
  EXPECT_EQ(text_of(turns_of(joined(2, 1), {tiles, tiles, tiles, tiles, tiles})),
            "a0 c0 b0 a1 d0 c1 b1 e0 a2 d1 c2 b2 e1 d2 e2");
}

/// Heads after the product that gives them queries, keys and values: a section each, all queries
/// first, of `shared` heads the same keys and values.
Pipeline projected(std::uint32_t heads, std::uint32_t section, std::uint32_t shared = 1) {
  Pipeline pipeline;
  pipeline.heads = heads;
  pipeline.section = section;
  pipeline.levels.push_back(0);
  for (std::uint32_t group = 0; group < 2 * heads; ++group)
    pipeline.levels.push_back(1 + group % 2);
  for (std::uint32_t head = 0; head < heads; ++head) pipeline.read_by.push_back(2 * head);
  for (std::uint32_t head = 0; head < heads; head += shared) pipeline.read_by.push_back(2 * head);
  for (std::uint32_t head = 0; head < heads; head += shared) {
    pipeline.read_by.push_back(2 * head + 1);
  }
  return pipeline;
}

TEST(TurnsOf, WhatTheNextHeadReadsIsMultipliedBesideThisOne) {
  const std::vector<Tile> rows = cut(4, 4);
  const std::vector<Tile> product = cut(4, 4, 9, 1);  // q 0 to 2, k 3 to 5, v 6 to 8
  EXPECT_EQ(text_of(turns_of(projected(3, 1), {product, rows, rows, rows, rows, rows, rows})),
            "a0 a3 b0 a1 a4 a6 d0 a2 a5 c0 a7 f0 a8 e0 g0");
  // Two tiles of rows: they are spread over the turns of the head before.
  const std::vector<Tile> halves = cut(4, 2);
  EXPECT_EQ(text_of(turns_of(projected(2, 1), {cut(4, 4, 6, 1), halves, halves, halves, halves})),
            "a0 a2 b0 a4 b1 a1 c0 a3 d0 a5 c1 d1 e0 e1");
}

TEST(TurnsOf, AProductComesBeforeTheHeadsThatReadIt) {
  test::Random random(7);
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t heads = test::between(random, 1, 6);
    const std::uint32_t shared = heads % 2 == 0 ? test::between(random, 1, 2) : 1;
    const std::uint32_t section = test::between(random, 1, 5), m = test::between(random, 1, 12);
    Pipeline pipeline = projected(heads, section, shared);
    pipeline.strips = test::between(random, 1, 2);
    const auto sections = static_cast<std::uint32_t>(pipeline.read_by.size());
    Tiles tiles{cut(m, test::between(random, 1, m), sections * section,
                    section * test::between(random, 1, sections), random() % 2 != 0)};
    const std::uint32_t rows = test::between(random, 1, m);
    for (std::uint32_t group = 0; group < 2 * heads; ++group) tiles.push_back(cut(m, rows));
    std::vector<std::vector<bool>> done;
    for (const std::vector<Tile>& some : tiles) done.emplace_back(some.size(), false);
    // Whether all of the product that a head reads has been issued: both of its groups, or one.
    const auto has = [&](std::uint32_t head, bool scores, bool context) {
      for (std::size_t t = 0; t < tiles[0].size(); ++t) {
        const Tile& tile = tiles[0][t];
        for (std::uint32_t s = tile.col / section; s * section < tile.col + tile.cols; ++s) {
          const bool is_query = s == head, is_key = s == heads + head / shared;
          const bool is_value = s == heads + heads / shared + head / shared;
          const bool reads = (scores && (is_query || is_key)) || (context && is_value);
          if (reads && !done[0][t]) return false;
        }
      }
      return true;
    };
    for (const Turn& turn : turns_of(pipeline, tiles)) {
      ASSERT_FALSE(done.at(turn.group).at(turn.tile)) << "once";
      done[turn.group][turn.tile] = true;
      if (turn.group == 0) continue;
      const auto head = static_cast<std::uint32_t>((turn.group - 1) / 2);
      const bool is_scores = turn.group % 2 != 0;
      ASSERT_TRUE(has(head, is_scores, !is_scores)) << text_of(turns_of(pipeline, tiles));
      if (is_scores && pipeline.strips > 1 && head + 1 < heads) {
        ASSERT_TRUE(has(head + 1, true, false)) << "written between the strips of this one";
      }
      if (!is_scores) ASSERT_TRUE(done[turn.group - 1][turn.tile]) << "rows of its scores";
    }
    for (const std::vector<bool>& some : done) {
      ASSERT_EQ(std::count(some.begin(), some.end(), false), 0);
    }
  }
}

TEST(TurnsOf, ARingOfTwoRowTilesHoldsWhatTheChainHasNotRead) {
  test::Random random(6);
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t heads = test::between(random, 1, 4), after = test::between(random, 1, 4);
    const std::uint32_t rows = test::between(random, 1, 5), m = test::between(random, 1, 30);
    const Pipeline pipeline = joined(heads, after);
    Tiles tiles;
    for (std::size_t group = 0; group < pipeline.levels.size(); ++group) {
      const std::uint32_t n = test::between(random, 1, 4);
      tiles.push_back(cut(m, rows, n, test::between(random, 1, n)));
    }
    // By level: row tiles that have been begun, and tiles that have been issued.
    std::vector<std::uint32_t> begun(after + 2), issued(after + 2);
    std::vector<std::uint32_t> of_rows(after + 2);  // tiles of a level in a row tile
    for (std::size_t group = 0; group < tiles.size(); ++group) {
      for (const Tile& tile : tiles[group]) of_rows[pipeline.levels[group]] += tile.row == 0;
    }
    for (const Turn& turn : turns_of(pipeline, tiles)) {
      const std::uint32_t level = pipeline.levels[turn.group];
      const std::uint32_t row_tile = tiles[turn.group][turn.tile].row / rows;
      begun[level] = std::max(begun[level], row_tile + 1);
      ++issued[level];
      ASSERT_EQ((issued[level] - 1) / of_rows[level], row_tile) << "one after the other";
      if (level > 0) {
        ASSERT_GE(issued[level - 1], (row_tile + 1) * (level == 1 ? 1 : of_rows[level - 1]));
      }
      if (level > 0 && level < after + 1) {
        ASSERT_LE(begun[level], issued[level + 1] / of_rows[level + 1] + 2) << "two slots";
      }
    }
    for (std::size_t level = 0; level < issued.size(); ++level) {
      ASSERT_EQ(issued[level], of_rows[level] * ((m + rows - 1) / rows));
    }
  }
}

TEST(TurnsOf, WholeRowsWaitForTheLastColumns) {
  EXPECT_EQ(order({0, 1}, {cut(4, 2, 4, 2), cut(4, 2)}), "a0 a1 a2 b0 a3 b1");
  EXPECT_EQ(order({0, 1}, {cut(4, 2, 4, 2, true), cut(4, 2)}), "a0 a1 a2 a3 b0 b1");
}

/// Whether every tile is issued once, in the order of its group, not before a turn has passed since
/// the last rows that it reads, and not later than it has to be.
void expect_in_order(const Pipeline& pipeline, const Tiles& tiles) {
  const std::vector<Turn> turns = turns_of(pipeline, tiles);
  std::vector<std::vector<std::size_t>> issued(tiles.size());  // turn by group and tile
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    ASSERT_EQ(turns[turn].tile, issued.at(turns[turn].group).size());
    issued[turns[turn].group].push_back(turn);
  }
  for (std::size_t group = 0; group < tiles.size(); ++group) {
    ASSERT_EQ(issued[group].size(), tiles[group].size());
    const std::uint32_t level = pipeline.levels[group];
    if (level == 0) continue;
    for (std::size_t i = 0; i < tiles[group].size(); ++i) {
      const Tile& tile = tiles[group][i];
      std::size_t last = 0;
      for (std::size_t j = 0; j < tiles[group - 1].size(); ++j) {
        const Tile& source = tiles[group - 1][j];
        const bool is_read = source.row < tile.row + tile.rows;
        if (is_read) last = std::max(last, issued[group - 1][j]);
      }
      ASSERT_LT(last, issued[group][i]);
      // A tile of the level before comes in between if there is one left.
      std::size_t between = 0, left = 0;
      for (std::size_t other = 0; other < tiles.size(); ++other) {
        if (pipeline.levels[other] + 1 != level) continue;
        for (const std::size_t turn : issued[other]) {
          between += turn > last && turn < issued[group][i] ? 1 : 0;
          left += turn > last ? 1 : 0;
        }
      }
      ASSERT_GE(between, std::min<std::size_t>(left, 1));
    }
  }
}

TEST(TurnsOf, EveryTileOnceAfterWhatItReads) {
  test::Random random(5);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const std::uint32_t m = test::between(random, 1, 30);
    const auto tiles_of_one = [&] {
      const std::uint32_t n = test::between(random, 1, 6);
      return cut(m, test::between(random, 1, m), n, test::between(random, 1, n), random() % 2 != 0);
    };
    Pipeline pipeline;
    Tiles tiles;
    const bool heads = random() % 2 != 0;
    const std::uint32_t groups = test::between(random, 1, 5) * (heads ? 2 : 1);
    for (std::uint32_t group = 0; group < groups; ++group) {
      pipeline.levels.push_back(heads ? group % 2 : group);
      tiles.push_back(tiles_of_one());
    }
    expect_in_order(pipeline, tiles);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace systole::mapper

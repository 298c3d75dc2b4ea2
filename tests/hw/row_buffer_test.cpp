#include "hw/row_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <set>
#include <stdexcept>

namespace systole::hw {
namespace {

using Rows = std::vector<std::uint32_t>;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  // access, free_after

Pairs planned(const Rows& rows, std::size_t capacity) {
  Pairs pairs;
  for (const RowFetch& fetch : plan_fetches(rows, capacity)) {
    pairs.emplace_back(fetch.access, fetch.free_after);
  }
  return pairs;
}

/// A list of rows in the order of their use, as LRU is usually described.
Pairs simulated(const Rows& rows, std::size_t capacity) {
  struct Held {
    std::uint32_t row;
    std::size_t last_access;
  };
  std::list<Held> held;  // least recently used first
  Pairs fetches;
  for (std::size_t access = 0; access < rows.size(); ++access) {
    const auto hit = std::find_if(held.begin(), held.end(),
                                  [&](const Held& entry) { return entry.row == rows[access]; });
    if (hit != held.end()) {
      held.erase(hit);
    } else if (held.size() < capacity) {
      fetches.emplace_back(access, 0);
    } else {
      fetches.emplace_back(access, held.front().last_access + 1);
      held.pop_front();
    }
    held.push_back({rows[access], access});
  }
  return fetches;
}

Rows random_rows(std::mt19937& random) {
  const auto size = [&](std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  };
  Rows rows(size(0, 120));
  const std::size_t names = size(1, 20);
  for (auto& row : rows) row = static_cast<std::uint32_t>(size(0, names - 1) * 1'000'003);
  return rows;
}

TEST(RowBuffer, TheLeastRecentlyUsedRowMakesRoom) {
  // 7 8 7 fill two places; 9 drops 8, which was last used by access 1; 8 then drops 7 (access 2).
  EXPECT_EQ(planned({7, 8, 7, 9, 8, 8, 9}, 2), (Pairs{{0, 0}, {1, 0}, {3, 2}, {4, 3}}));
}

TEST(RowBuffer, ASinglePlaceIsFreeWhenTheRowBeforeIsDone) {
  EXPECT_EQ(planned({5, 5, 6, 5, 5, 5, 7}, 1), (Pairs{{0, 0}, {2, 2}, {3, 3}, {6, 6}}));
}

TEST(RowBuffer, WithRoomForAllEveryRowIsFetchedOnceAtAnyTime) {
  const Rows rows{4, 2, 4, 0, 2, 9, 0};
  const Pairs once{{0, 0}, {1, 0}, {3, 0}, {5, 0}};
  EXPECT_EQ(planned(rows, 4), once);
  EXPECT_EQ(planned(rows, 1'000'000), once);
}

TEST(RowBuffer, CyclingOverOneRowTooManyAlwaysMisses) {
  const Pairs all{{0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}};
  EXPECT_EQ(planned({1, 2, 3, 1, 2, 3}, 2), all);
}

TEST(RowBuffer, NoAccessesNeedNoFetches) { EXPECT_TRUE(plan_fetches({}, 3).empty()); }

TEST(RowBuffer, RefusesABufferWithoutRoom) {
  EXPECT_THROW((void)plan_fetches({1}, 0), std::invalid_argument);
}

TEST(RowBuffer, EqualsASimulationAndNeverFetchesMoreWithMoreRoom) {
  std::mt19937 random(1);
  std::size_t fetched_again = 0;
  for (int round = 0; round < 1000; ++round) {
    const Rows rows = random_rows(random);
    const std::size_t distinct = std::set<std::uint32_t>(rows.begin(), rows.end()).size();
    std::size_t fewest = rows.size();
    for (std::size_t capacity = 1; capacity <= distinct + 1; ++capacity) {
      const Pairs fetches = planned(rows, capacity);
      ASSERT_EQ(fetches, simulated(rows, capacity)) << round << " " << capacity;
      EXPECT_LE(fetches.size(), fewest);
      fewest = fetches.size();
      fetched_again += fetches.size() - distinct;
    }
    EXPECT_EQ(fewest, distinct);
  }
  EXPECT_GT(fetched_again, 10'000U);
}

/// With every fetch sent as early as the plan allows, the rows that are still wanted fit.
TEST(RowBuffer, FetchesThatRunAheadFindTheirPlaceFree) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const Rows rows = random_rows(random);
    const std::size_t capacity = std::uniform_int_distribution<std::size_t>(1, 8)(random);
    const std::vector<RowFetch> fetches = plan_fetches(rows, capacity);
    std::vector<std::size_t> wanted(rows.size(), 0);  // rows in the buffer during each access
    for (std::size_t f = 0; f < fetches.size(); ++f) {
      const std::uint32_t row = rows[fetches[f].access];
      std::size_t last = fetches[f].access;
      for (std::size_t i = last + 1; i < rows.size(); ++i) {
        const bool again = std::any_of(fetches.begin(), fetches.end(),
                                       [&](const RowFetch& other) { return other.access == i; });
        if (rows[i] != row) continue;
        if (again) break;
        last = i;
      }
      EXPECT_LE(fetches[f].free_after, fetches[f].access);
      EXPECT_TRUE(f == 0 || fetches[f - 1].free_after <= fetches[f].free_after);
      for (std::size_t i = fetches[f].free_after; i <= last; ++i) ++wanted[i];
    }
    for (const std::size_t rows_held : wanted) EXPECT_LE(rows_held, capacity);
  }
}

}  // namespace
}  // namespace systole::hw

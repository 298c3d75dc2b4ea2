#include "hw/attention/timing/row_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>

#include "tests/hw/attention/timing/naive_row_buffer.h"

namespace systole::hw {
namespace {

using Rows = std::vector<std::uint32_t>;
using Fetches = std::vector<NaiveFetch>;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  // access, free_after

Pairs planned(const Rows& rows, std::size_t capacity) {
  Pairs pairs;
  for (const RowFetch& fetch : plan_fetches(rows, capacity)) {
    pairs.emplace_back(fetch.access, fetch.free_after);
  }
  return pairs;
}

Fetches planned(const Rows& rows, std::size_t capacity, std::uint32_t bundle) {
  Fetches fetches;
  for (const RowFetch& fetch : plan_fetches(rows, capacity, bundle)) {
    fetches.emplace_back(fetch.access, fetch.free_after, fetch.kept);
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

TEST(RowBuffer, TheRowThatIsNeededAgainLastMakesRoom) {
  // 7 and 8 fill two places; 9 drops 8 (last used by access 1), as 7 is needed first; 8 then drops
  // 7, as 9 is needed again and 7 is not.
  EXPECT_EQ(planned({7, 8, 7, 9, 7, 8, 9}, 2), (Pairs{{0, 0}, {1, 0}, {3, 2}, {5, 5}}));
}

TEST(RowBuffer, OfRowsThatAreNotNeededAgainTheLeastRecentlyUsedMakesRoom) {
  EXPECT_EQ(planned({7, 8, 7, 9}, 2), (Pairs{{0, 0}, {1, 0}, {3, 2}}));
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

TEST(RowBuffer, CyclingOverOneRowTooManyKeepsAllButOne) {
  EXPECT_EQ(planned({1, 2, 3, 1, 2, 3}, 2), (Pairs{{0, 0}, {1, 0}, {2, 2}, {4, 4}}));
}

TEST(RowBuffer, NoAccessesNeedNoFetches) { EXPECT_TRUE(plan_fetches({}, 3).empty()); }

TEST(RowBuffer, RefusesABufferWithoutRoom) {
  EXPECT_THROW((void)plan_fetches({1}, 0), std::invalid_argument);
  EXPECT_THROW((void)plan_fetches({1}, 1, 0), std::invalid_argument);
}

TEST(RowBuffer, KeepsOfABundleWhatIsNeededSoonest) {
  // 10 and 11 come together. 20 drops neither where there is room for three.
  EXPECT_EQ(planned({10, 20, 11, 10}, 3, 2), (Fetches{{0, 0, 2}, {1, 0, 1}}));
  // Two places: 20 drops 10, which is needed after 11, and 10 comes again.
  EXPECT_EQ(planned({10, 20, 11, 10}, 2, 2), (Fetches{{0, 0, 2}, {1, 1, 1}, {3, 2, 1}}));
  // 11 does not drop 20, which is needed before it; 21 is not needed at all.
  EXPECT_EQ(planned({20, 10, 20, 11}, 2, 2), (Fetches{{0, 0, 1}, {1, 0, 1}, {3, 2, 1}}));
  // A single place is for the row that is needed.
  EXPECT_EQ(planned({10, 11, 10}, 1, 2), (Fetches{{0, 0, 1}, {1, 1, 1}, {2, 2, 1}}));
}

TEST(RowBuffer, EqualsASimulationAndNeverFetchesMoreWithMoreRoom) {
  std::mt19937 random(1);
  std::size_t fetched_again = 0;
  for (int round = 0; round < 300; ++round) {
    const Rows rows = random_rows(random);
    const std::size_t distinct = std::set<std::uint32_t>(rows.begin(), rows.end()).size();
    std::size_t fewest = rows.size();
    for (std::size_t capacity = 1; capacity <= distinct + 1; ++capacity) {
      const Fetches fetches = planned(rows, capacity, 1);
      ASSERT_EQ(fetches, NaiveRowBuffer(rows, capacity, 1).fetches()) << round << " " << capacity;
      EXPECT_LE(fetches.size(), fewest);
      fewest = fetches.size();
      fetched_again += fetches.size() - distinct;
    }
    EXPECT_EQ(fewest, distinct);
  }
  EXPECT_GT(fetched_again, 10'000U);
}

TEST(RowBuffer, OfBundlesEqualsASimulation) {
  std::mt19937 random(3);
  std::size_t together = 0, dropped = 0;
  for (int round = 0; round < 300; ++round) {
    Rows rows = random_rows(random);
    for (std::uint32_t& row : rows) row %= 31;
    for (const std::uint32_t bundle : {2U, 3U, 4U}) {
      const std::size_t capacity = std::uniform_int_distribution<std::size_t>(1, 12)(random);
      const Fetches fetches = planned(rows, capacity, bundle);
      ASSERT_EQ(fetches, NaiveRowBuffer(rows, capacity, bundle).fetches()) << round;
      for (const auto& [access, free_after, kept] : fetches) {
        EXPECT_LE(free_after, access);
        together += kept > 1 ? 1 : 0;
        dropped += kept < bundle ? 1 : 0;
      }
    }
  }
  EXPECT_GT(together, 1000U);
  EXPECT_GT(dropped, 1000U);
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
      for (std::size_t i = fetches[f].free_after; i <= last; ++i) ++wanted[i];
    }
    for (const std::size_t rows_held : wanted) EXPECT_LE(rows_held, capacity);
  }
}

}  // namespace
}  // namespace systole::hw

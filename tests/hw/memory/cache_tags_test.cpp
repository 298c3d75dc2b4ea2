#include "hw/memory/cache_tags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

namespace systole::hw {
namespace {

/// A sequence of accesses with some locality: steps, repeats and jumps.
struct LineUse {
  std::uint64_t line;
  bool write;
};
std::vector<LineUse> random_uses(std::mt19937& random, std::size_t count, std::uint64_t lines) {
  std::vector<LineUse> uses;
  std::uint64_t line = 0;
  for (std::size_t i = 0; i < count; ++i) {
    switch (random() % 4) {
      case 0:
        line = random() % lines;
        break;
      case 1:
        line =
            uses.empty() ? 0 : uses[uses.size() - 1 - random() % std::min<std::size_t>(i, 20)].line;
        break;
      default:
        line = (line + 1) % lines;
    }
    uses.push_back({line, random() % 3 == 0});
  }
  return uses;
}

/// The same cache, written down as plainly as can be: each set a list, the last used line first.
class PlainCache {
 public:
  PlainCache(std::size_t sets, std::size_t ways) : sets_(sets), ways_(ways) {}

  struct Outcome {
    bool hit;
    bool writes_back;
    std::uint64_t victim;
  };
  Outcome access(const LineUse& use) {
    std::list<std::uint64_t>& set = sets_[use.line % sets_.size()];
    const auto found = std::find(set.begin(), set.end(), use.line);
    Outcome outcome{found != set.end(), false, 0};
    if (outcome.hit) {
      set.erase(found);
    } else if (set.size() == ways_) {
      outcome.victim = set.back();
      outcome.writes_back = dirty_.erase(set.back()) == 1;
      set.pop_back();
    }
    set.push_front(use.line);
    if (use.write) dirty_.insert(use.line);
    return outcome;
  }
  [[nodiscard]] std::size_t dirty() const { return dirty_.size(); }

 private:
  std::vector<std::list<std::uint64_t>> sets_;
  std::size_t ways_;
  std::set<std::uint64_t> dirty_;
};

TEST(CacheTags, DoWhatAPlainCacheDoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const std::size_t sets = 1 + random() % 9, ways = 1 + random() % 8;
    CacheTags tags(sets, ways);
    PlainCache plain(sets, ways);
    std::map<CacheTags::Slot, std::uint64_t> places;
    for (const LineUse& use : random_uses(random, 2000, 2 * sets * ways + 1)) {
      const CacheTags::Access access = tags.access(use.line, use.write);
      const PlainCache::Outcome expected = plain.access(use);
      ASSERT_EQ(access.hit, expected.hit);
      ASSERT_EQ(access.dirty_victim.has_value(), expected.writes_back);
      if (expected.writes_back) {
        ASSERT_EQ(*access.dirty_victim, expected.victim);
        ASSERT_EQ(places.at(access.slot), expected.victim) << "its place is the one that is taken";
      }
      places[access.slot] = use.line;
      ASSERT_EQ(access.slot / ways, use.line % sets);
      ASSERT_EQ(tags.find(use.line), access.slot);
    }
    EXPECT_EQ(tags.dirty_lines(), plain.dirty());
    for (const auto& [slot, line] : places) EXPECT_EQ(tags.find(line), slot);
  }
}

TEST(CacheTags, MoreWaysNeverMissMore) {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    const std::size_t sets = 1 + random() % 8;
    const std::vector<LineUse> uses = random_uses(random, 3000, 100);
    std::size_t before = uses.size() + 1;
    for (std::size_t ways = 1; ways <= 16; ++ways) {
      CacheTags tags(sets, ways);
      std::size_t misses = 0;
      for (const LineUse& use : uses) misses += tags.access(use.line, use.write).hit ? 0 : 1;
      EXPECT_LE(misses, before) << ways;
      before = misses;
    }
  }
}

TEST(CacheTags, LookingDoesNotCountAsUse) {
  CacheTags tags(1, 2);
  tags.access(1, false);
  tags.access(2, false);
  EXPECT_TRUE(tags.find(1));
  tags.access(3, false);
  EXPECT_FALSE(tags.find(1)) << "the least recently used";
  EXPECT_TRUE(tags.find(2));
}

// Once around more lines than there is room for, again and again: LRU has always thrown out the
// next one.
TEST(CacheTags, RandomReplacementKeepsPartOfALoopThatDoesNotFit) {
  const auto hits = [](Replacement replacement) {
    CacheTags tags(64, 8, replacement);
    int found = 0;
    for (int round = 0; round < 20; ++round) {
      for (std::uint64_t line = 0; line < 640; ++line) found += tags.access(line, false).hit;
    }
    return found;
  };
  EXPECT_EQ(hits(Replacement::kLru), 0);
  // A line survives the misses of a round, x of the 10 lines of its set, with (1 - 1/8)^x: 0.5.
  const double share = hits(Replacement::kRandom) / (19.0 * 640);
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.75);
}

TEST(CacheTags, RandomReplacementFillsEmptyPlacesFirst) {
  CacheTags tags(1, 8, Replacement::kRandom);
  for (std::uint64_t line = 0; line < 8; ++line) tags.access(line, false);
  for (std::uint64_t line = 0; line < 8; ++line) EXPECT_TRUE(tags.find(line)) << line;
}

TEST(CacheTags, NeedASetAndAWay) {
  EXPECT_THROW(CacheTags(0, 1), std::invalid_argument);
  EXPECT_THROW(CacheTags(1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw

#include "mapper/choose/repeats.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace systole::mapper {
namespace {

constexpr std::uint64_t kLong = 1'000'000;

/// Layers of two pipelines after a first one, the last layer's followed by another.
std::vector<std::size_t> layers(std::size_t count) {
  std::vector<std::size_t> shapes{0};
  for (std::size_t i = 0; i < count; ++i) shapes.insert(shapes.end(), {1, 2});
  shapes.push_back(3);
  return shapes;
}

/// Adds pipelines that take `cycles` each.
void add(RepeatFinder& finder, std::uint64_t& now, const std::vector<std::uint64_t>& cycles) {
  for (const std::uint64_t more : cycles) finder.add(0, now += more);
}

TEST(RepeatFinder, SkipsToTheLastPipelineAfterTwoEqualLayers) {
  RepeatFinder finder(layers(8), std::vector<std::size_t>(18, 0));
  std::uint64_t now = 0;
  add(finder, now, {5, kLong, 2 * kLong, kLong, kLong});
  EXPECT_FALSE(finder.next());  // the layers took different cycles
  add(finder, now, {kLong, kLong});
  const auto repeat = finder.next();
  ASSERT_TRUE(repeat);
  EXPECT_EQ(repeat->period, 2U);
  EXPECT_EQ(repeat->count, 10U);
  EXPECT_EQ(repeat->cycles, 2 * kLong);
  finder.take_over(*repeat);
  EXPECT_FALSE(finder.next());
}

TEST(RepeatFinder, SkipsOnlyToWhereTheSamePlacesAreWritten) {
  // The layers write two places in turn.
  std::vector<std::size_t> places{9};
  for (std::size_t i = 0; i < 8; ++i) places.insert(places.end(), {7, i % 2});
  places.push_back(9);
  RepeatFinder finder(layers(8), places);
  std::uint64_t now = 0;
  add(finder, now, {5, kLong, kLong, kLong, kLong, kLong, kLong});
  const auto repeat = finder.next();
  ASSERT_TRUE(repeat);
  EXPECT_EQ(repeat->count, 8U);
}

TEST(RepeatFinder, RepeatsNothingThatIsShortOrTiledInAnotherWay) {
  RepeatFinder brief(layers(8), std::vector<std::size_t>(18, 0));
  std::uint64_t now = 0;
  add(brief, now, {5, 10, 10, 10, 10, 10, 10});
  EXPECT_FALSE(brief.next());
  RepeatFinder other(layers(8), std::vector<std::size_t>(18, 0));
  now = 0;
  add(other, now, {5, kLong, kLong, kLong, kLong});
  EXPECT_TRUE(other.next());
  other = RepeatFinder(layers(8), std::vector<std::size_t>(18, 0));
  now = 0;
  add(other, now, {5, kLong, kLong, kLong});
  other.add(1, now + kLong);
  EXPECT_FALSE(other.next());
}

}  // namespace
}  // namespace systole::mapper

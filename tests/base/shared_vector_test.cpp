#include "base/shared_vector.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace systole::hw {
namespace {

TEST(SharedVector, CopiesShareTheirElementsUntilOneChanges) {
  SharedVector<int> first({1, 2, 3});
  SharedVector<int> second = first;
  EXPECT_EQ(first.data(), second.data());
  second.edit().push_back(4);
  EXPECT_EQ(first.get(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(second.get(), (std::vector<int>{1, 2, 3, 4}));
  const int* const before = second.data();
  second.edit()[0] = 5;
  EXPECT_EQ(second.data(), before) << "it shares them with nobody";
  EXPECT_NE(first, second);
}

TEST(SharedVector, TakesTheElementsOfAVector) {
  std::vector<int> elements(100, 7);
  const int* const where = elements.data();
  const SharedVector<int> shared = std::move(elements);
  EXPECT_EQ(shared.data(), where);
  EXPECT_EQ(shared.size(), 100U);
  EXPECT_EQ(shared[99], 7);
}

TEST(SharedVector, IsEmptyAtFirst) {
  SharedVector<int> none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_EQ(none, SharedVector<int>(std::vector<int>()));
  none.edit().push_back(1);
  EXPECT_EQ(none.size(), 1U);
  none = {};
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace systole::hw

#include "base/shared_vector.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_directory.h"

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

TEST(SharedVector, MakesItsElementsWhenTheyAreWanted) {
  int made = 0;
  const auto of_three = [&] {
    return SharedVector<int>::deferred(3, [&made] {
      ++made;
      return std::vector<int>{1, 2, 3};
    });
  };
  const SharedVector<int> lent = of_three();
  EXPECT_EQ(lent.size(), 3U);
  EXPECT_FALSE(lent.empty());
  EXPECT_EQ(made, 0);
  {
    const SharedVector<int> copy = lent;
    const std::shared_ptr<const int> first = lent.hold(), second = copy.hold();
    EXPECT_EQ(first, second);
    EXPECT_EQ(first.get()[2], 3);
    EXPECT_EQ(made, 1) << "while they are held, once";
  }
  EXPECT_EQ(lent.hold().get()[0], 1);
  EXPECT_EQ(made, 2) << "they had not stayed";
  const SharedVector<int> kept = of_three();
  EXPECT_EQ(kept[1], 2);
  EXPECT_EQ(kept.get(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(kept.hold().get(), kept.data());
  EXPECT_EQ(made, 3) << "they stay";
  SharedVector<int> own = of_three();
  own.edit().push_back(4);
  EXPECT_EQ(own.size(), 4U);
  EXPECT_EQ(of_three().part(1, 2), SharedVector<int>({2, 3}));
  EXPECT_TRUE(SharedVector<int>::deferred(0, {}).empty());
}

TEST(SharedVector, ShowsWhatIsInAFile) {
  const TempDirectory directory;
  std::string text(100'000, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 251);
  const std::string path = directory.path("bytes");
  std::ofstream(path, std::ios::binary) << text;
  SharedVector<std::int8_t> part, copy;
  SharedVector<std::uint8_t> other;
  const std::int8_t* where = nullptr;
  {
    const MappedFile file(path);
    where = reinterpret_cast<const std::int8_t*>(file.bytes().data());
    const auto all = SharedVector<std::int8_t>::view(file, where, text.size());
    part = all.part(5000, 90'000);
    other = part.as<std::uint8_t>();
    copy = part;
  }
  ASSERT_EQ(part.data(), where + 5000) << "no copy";
  EXPECT_EQ(other.data(), reinterpret_cast<const std::uint8_t*>(part.data()));
  for (int times = 0; times < 2; ++times) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      ASSERT_EQ(part[i], static_cast<std::int8_t>(text[i + 5000])) << i;
      ASSERT_EQ(other[i], static_cast<std::uint8_t>(text[i + 5000])) << i;
    }
    part.let_go();  // they come again from the file
  }
  copy.edit()[0] = 1;
  EXPECT_EQ(part[0], static_cast<std::int8_t>(text[5000]));
  EXPECT_EQ(copy[1], part[1]);
  copy.let_go();
  EXPECT_EQ(copy[0], 1) << "its own elements stay";
}

TEST(SharedVector, KnowsWhatItIsMadeOfUntilItChanges) {
  const auto file = MappedFile::of_bytes("abcdef");
  const auto* first = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
  const auto rows = SharedVector<std::uint8_t>::view(file, first, 6);
  const auto make = [rows] {
    return std::vector<std::uint8_t>{rows[0], rows[3], rows[1], rows[4], rows[2], rows[5]};
  };
  SharedVector<std::uint8_t> columns = SharedVector<std::uint8_t>::deferred(6, make, rows);
  EXPECT_TRUE(rows.is_view());
  EXPECT_FALSE(columns.is_view());
  EXPECT_TRUE(rows.exchanged().empty());
  EXPECT_EQ(columns.exchanged().data(), first);
  const SharedVector<std::uint8_t> copy = columns;
  EXPECT_EQ(columns[1], 'd');
  EXPECT_EQ(columns.exchanged().data(), first) << "they are there, and the same";
  columns.edit()[1] = 'x';
  EXPECT_TRUE(columns.exchanged().empty());
  EXPECT_EQ(copy.exchanged().data(), first);
  SharedVector<std::uint8_t> only = SharedVector<std::uint8_t>::deferred(6, make, rows);
  EXPECT_EQ(only.get().size(), 6U);
  only.edit()[1] = 'x';
  EXPECT_TRUE(only.exchanged().empty());
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

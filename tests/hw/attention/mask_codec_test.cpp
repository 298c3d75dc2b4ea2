#include "hw/attention/mask_codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/input_error.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::hw {
namespace {

using Bytes = std::vector<std::uint8_t>;

HeadMask filled(std::size_t queries, std::size_t keys, std::uint8_t keep) {
  return {queries, keys, std::vector<std::uint8_t>(queries * keys, keep)};
}

/// Heads of one layer, all of the first one's size.
std::vector<SparseHead> random_masks(std::mt19937& random, std::size_t largest) {
  std::vector<SparseHead> heads{split_anywhere(random_mask(random, largest), random)};
  const std::size_t queries = heads[0].queries, keys = heads[0].keys;
  for (std::size_t more = random_size(random, 0, 3); more > 0; --more) {
    HeadMask mask = filled(queries, keys, 0);
    for (auto& keep : mask.keep) keep = random_size(random, 0, 2) == 0 ? 1 : 0;
    heads.push_back(split_anywhere(mask, random));
  }
  return heads;
}

void expect_same(const SparseHead& a, const SparseHead& b) {
  EXPECT_EQ(a.queries, b.queries);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.dense_columns, b.dense_columns);
  EXPECT_EQ(a.dense_keep, b.dense_keep);
  EXPECT_EQ(a.sparse_columns, b.sparse_columns);
  EXPECT_EQ(a.column_pointers, b.column_pointers);
  EXPECT_EQ(a.row_indices, b.row_indices);
}

void expect_round_trip(const std::vector<SparseHead>& heads) {
  const Bytes bytes = encode_mask(heads);
  std::size_t size = 0;
  for (const SparseHead& head : heads) {
    EXPECT_EQ(mask_bytes(head) % 8, 0U);
    size += mask_bytes(head);
  }
  EXPECT_EQ(bytes.size(), size);
  const auto copy = decode_mask(bytes, heads.size(), heads[0].queries, heads[0].keys);
  ASSERT_EQ(copy.size(), heads.size());
  for (std::size_t h = 0; h < heads.size(); ++h) expect_same(copy[h], heads[h]);
}

/// Key 1 is global and kept by queries 0 and 1; keys 3, 0 and 2 are walked in this order and kept
/// by queries 1 and 2, 0 and 2, and none.
SparseHead small_head() {
  return split_in_order({3, 4, {1, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1}}, {1}, {3, 0, 2});
}

constexpr std::size_t kDense = 8, kSparse = 10, kPointers = 16, kRows = 24, kBits = 28, kGap = 29;
const Bytes kSmallMask{1, 0, 0, 0, 4, 0, 0, 0, 1, 0,        // G, kept cells, global column
                       3, 0, 0, 0, 2, 0,                    // other columns
                       0, 0, 2, 0, 4, 0, 4, 0, 1, 2, 0, 2,  // pointers, row indices
                       3, 0, 0, 0};                         // bits, gap

/// Whether the bytes are refused; what is read must be a head, and the one of these bytes.
bool refused(const Bytes& bytes, std::size_t heads, std::size_t queries, std::size_t keys) {
  try {
    const auto read = decode_mask(bytes, heads, queries, keys);
    for (const SparseHead& head : read) EXPECT_NO_THROW(check_sparse_head(head));
    EXPECT_EQ(encode_mask(read), bytes);
    return false;
  } catch (const InputError&) {
    return true;
  }
}

TEST(MaskCodec, WritesTheTableOfItsDescription) {
  EXPECT_EQ(encode_mask({small_head()}), kSmallMask);
  expect_round_trip({small_head()});
}

TEST(MaskCodec, GivesBackRandomLayers) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) expect_round_trip(random_masks(random, 40));
}

TEST(MaskCodec, GivesBackEmptyAndFullHeads) {
  std::mt19937 random(2);
  for (const std::uint8_t keep : {std::uint8_t{0}, std::uint8_t{1}}) {
    for (const auto& [queries, keys] :
         {std::pair{1, 1}, {1, 9}, {9, 1}, {17, 5}, {5, 17}, {0, 3}, {3, 0}, {0, 0}}) {
      const HeadMask mask =
          filled(static_cast<std::size_t>(queries), static_cast<std::size_t>(keys), keep);
      expect_round_trip({split(mask, {}), split_anywhere(mask, random)});
    }
  }
  EXPECT_TRUE(encode_mask({}).empty());
  EXPECT_TRUE(decode_mask({}, 0, 3, 4).empty());
}

TEST(MaskCodec, TakesTwoBytesForAQueryFromTheTwoHundredAndFiftySeventhOn) {
  const SparseHead narrow = split(filled(256, 2, 1), {});
  const SparseHead wide = split(filled(257, 2, 1), {});
  EXPECT_EQ(mask_bytes(narrow), 536U);  // 8 + 4 + 6 + 512 = 530
  EXPECT_EQ(mask_bytes(wide), 1048U);   // 8 + 4 + 6 + 1028 = 1046
  expect_round_trip({narrow});
  expect_round_trip({wide, split(filled(257, 2, 1), {1})});
}

TEST(MaskCodec, TakesFourBytesForAPointerFrom65536KeptCellsOn) {
  const SparseHead narrow = split(filled(255, 257, 1), {});  // 65,535 cells
  const SparseHead wide = split(filled(256, 256, 1), {});    // 65,536
  EXPECT_EQ(mask_bytes(narrow), 66576U);                     // 8 + 514 + 516 + 65,535 = 66,573
  EXPECT_EQ(mask_bytes(wide), 67088U);                       // 8 + 512 + 1,028 + 65,536 = 67,084
  expect_round_trip({narrow});
  expect_round_trip({wide});
  HeadMask large = filled(300, 310, 1);
  large.keep[7] = 0;
  expect_round_trip({split(large, {309, 2}), split(large, {})});
}

TEST(MaskCodec, RefusesEveryTruncation) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    const auto heads = random_masks(random, 12);
    const Bytes bytes = encode_mask(heads);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_TRUE(refused(cut, heads.size(), heads[0].queries, heads[0].keys)) << size;
    }
  }
}

TEST(MaskCodec, RefusesOrReadsExactlyWhateverBitIsFlipped) {
  std::mt19937 random(4);
  int read = 0, not_read = 0;
  for (int round = 0; round < 30; ++round) {
    const auto heads = random_masks(random, 12);
    Bytes bytes = encode_mask(heads);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      ++(refused(bytes, heads.size(), heads[0].queries, heads[0].keys) ? not_read : read);
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    }
  }
  EXPECT_GT(read, 100);  // a bit of the dense block, a query that moves within its column
  EXPECT_GT(not_read, 1000);
}

TEST(MaskCodec, RefusesOrReadsExactlyWhateverIsDoneToTheBytes) {
  std::mt19937 random(5);
  int not_read = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto heads = random_masks(random, 12);
    Bytes bytes = encode_mask(heads);
    for (std::size_t changes = random_size(random, 1, 4); changes > 0; --changes) {
      bytes[random_size(random, 0, bytes.size() - 1)] = static_cast<std::uint8_t>(random());
    }
    not_read +=
        static_cast<int>(refused(bytes, heads.size() + random_size(random, 0, 9) / 9,
                                 heads[0].queries, heads[0].keys + random_size(random, 0, 9) / 9));
  }
  EXPECT_GT(not_read, 1000);
}

struct BadMask {
  const char* name;
  std::function<void(Bytes& bytes)> change;
  const char* expected;
};

std::function<void(Bytes& bytes)> set_mask_byte(std::size_t at, std::uint8_t value) {
  return [=](Bytes& bytes) { bytes[at] = value; };
}

class RefusesMask : public testing::TestWithParam<BadMask> {};

TEST_P(RefusesMask, AndNamesThePlace) {
  Bytes bytes = kSmallMask;
  GetParam().change(bytes);
  const std::string what = input_error_of([&] { (void)decode_mask(bytes, 1, 3, 4); });
  EXPECT_EQ(what.find(GetParam().expected), 0U) << what;
}

INSTANTIATE_TEST_SUITE_P(
    MaskCodec, RefusesMask,
    testing::Values(
        BadMask{"Nothing", [](Bytes& b) { b.clear(); }, "byte 0: the mask ends too early"},
        BadMask{"GlobalColumns", set_mask_byte(0, 5), "byte 8: more global columns than keys"},
        BadMask{"ManyGlobalColumns", set_mask_byte(3, 255),
                "byte 8: more global columns than keys"},
        BadMask{"ManyCells", set_mask_byte(7, 255), "byte 32: the mask ends too early"},
        BadMask{"KeyTwice", set_mask_byte(kSparse, 1),
                "byte 32: sparse head: a key is named twice"},
        BadMask{"KeyOutOfRange", set_mask_byte(kDense, 4),
                "byte 32: sparse head: a key is named twice or"},
        BadMask{"FirstPointer", set_mask_byte(kPointers, 1),
                "byte 32: sparse head: column pointers"},
        BadMask{"PointersFall", set_mask_byte(kPointers + 2, 5),
                "byte 32: sparse head: column pointers"},
        BadMask{"LastPointer", set_mask_byte(kPointers + 6, 5),
                "byte 32: sparse head: column pointers"},
        BadMask{"RowsFall", set_mask_byte(kRows, 2), "byte 32: sparse head: row indices"},
        BadMask{"RowOutOfRange", set_mask_byte(kRows + 1, 3), "byte 32: sparse head: row indices"},
        BadMask{"StrayBit", set_mask_byte(kBits, 0x0b),
                "byte 29: a bit after the last cell is set"},
        BadMask{"LastStrayBit", set_mask_byte(kBits, 0x83),
                "byte 29: a bit after the last cell is set"},
        BadMask{"Gap", set_mask_byte(kGap, 1), "byte 30: a byte between two heads is not 0"},
        BadMask{"EndOfGap", set_mask_byte(kGap + 2, 128),
                "byte 32: a byte between two heads is not 0"},
        BadMask{"NoGap", [](Bytes& b) { b.resize(kGap); }, "byte 29: the mask ends too early"},
        BadMask{"Trailing", [](Bytes& b) { b.push_back(0); }, "byte 32: bytes after the last"},
        BadMask{"AnotherHead",
                [](Bytes& b) { b.insert(b.end(), kSmallMask.begin(), kSmallMask.end()); },
                "byte 32: bytes after the last head"}),
    [](const testing::TestParamInfo<BadMask>& test) { return test.param.name; });

TEST(MaskCodec, RefusesMoreTokensThanAnIndexNames) {
  EXPECT_TRUE(refused(Bytes(64, 0), 1, 65536, 0));
  EXPECT_TRUE(refused(Bytes(64, 0), 1, 0, 65536));
  EXPECT_TRUE(refused(kSmallMask, 2, 3, 4));
}

}  // namespace
}  // namespace systole::hw

#include "model/mask/attention_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/checkpoint/vit_checkpoint.h"
#include "model/mask/sparsify.h"
#include "support/paths.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"
#include "tests/support/npy_bytes.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

/// Two heads of 2 queries and 3 keys: one with keys 0 and 2 of query 0 and key 0 of query 1, one
/// full.
AttentionMask small_mask() {
  AttentionMask mask({1, 2, 2, 3});
  mask.keep(0, 0, 0, 0);
  mask.keep(0, 0, 0, 2);
  mask.keep(0, 0, 1, 0);
  for (std::size_t cell = 6; cell < 12; ++cell) mask.keep(cell);
  return mask;
}

TEST(AttentionMask, CountsWhatItKeeps) {
  const AttentionMask mask = small_mask();
  EXPECT_TRUE(mask.kept(0, 0, 0, 2));
  EXPECT_FALSE(mask.kept(0, 0, 1, 2));
  EXPECT_TRUE(mask.kept(0));
  EXPECT_FALSE(mask.kept(5));
  EXPECT_EQ(mask.kept_count(), 9U);
  EXPECT_EQ(mask.kept_count(0, 0), 3U);
  EXPECT_EQ(mask.kept_count(0, 1), 6U);
  EXPECT_DOUBLE_EQ(mask.sparsity(), 0.25);
  EXPECT_EQ(mask.shape().text(), "1 x 2 x 2 x 3");
}

TEST(AttentionMask, GivesHeadsInCompressedColumns) {
  const AttentionMask mask = small_mask();
  const hw::SparseHead first = mask.head(0, 0);
  EXPECT_NO_THROW(hw::check_sparse_head(first));
  EXPECT_EQ(first.queries, 2U);
  EXPECT_EQ(first.keys, 3U);
  EXPECT_THAT(first.dense_columns, IsEmpty());
  EXPECT_THAT(first.sparse_columns, ElementsAre(0, 1, 2));
  EXPECT_THAT(first.column_pointers, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(first.row_indices, ElementsAre(0, 1, 0));
  EXPECT_THAT(mask.head(0, 1).row_indices, ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(AttentionMask, FindsTheFirstRowWithoutAKey) {
  AttentionMask mask({2, 2, 3, 2});
  EXPECT_EQ(mask.first_empty_row(), std::nullopt);  // heads without any cell are empty, not wrong
  for (std::size_t query = 0; query < 3; ++query) mask.keep(0, 1, query, query % 2);
  EXPECT_EQ(mask.first_empty_row(), std::nullopt);
  mask.keep(1, 1, 0, 1);
  mask.keep(1, 1, 2, 0);
  ASSERT_EQ(mask.first_empty_row(), 10U);
  EXPECT_EQ(row_text(mask.shape(), 10), "layer 1, head 1, row 1");
}

class MaskFile : public testing::Test {
 protected:
  AttentionMask load(const std::string& bytes) const {
    return load_mask(Npy::open(directory_.write("m.npy", bytes)));
  }
  /// The error without the file's name.
  std::string error_of(const std::string& bytes) const {
    const std::string error = input_error_of([&] { load(bytes); });
    const std::string begin = directory_.path("m.npy") + ": ";
    EXPECT_THAT(error, StartsWith(begin));
    return error.substr(begin.size());
  }

  TempDirectory directory_;
};

TEST_F(MaskFile, KeepsWhatIsNotMarked) {
  const AttentionMask mask = load(npy_mask("(1, 1, 2, 3)", std::string("\0\1\0\0\1\1", 6)));
  EXPECT_EQ(mask.shape(), (AttentionShape{1, 1, 2, 3}));
  const AttentionMask expected = small_mask();
  for (std::size_t cell = 0; cell < 6; ++cell) EXPECT_EQ(mask.kept(cell), expected.kept(cell));
}

TEST_F(MaskFile, IsReadAsItWasSaved) {
  const AttentionMask mask = small_mask();
  save_mask(mask, directory_.path("saved.npy"));
  const AttentionMask read = load_mask(Npy::open(directory_.path("saved.npy")));
  EXPECT_EQ(read.shape(), mask.shape());
  for (std::size_t cell = 0; cell < 12; ++cell) EXPECT_EQ(read.kept(cell), mask.kept(cell));
}

TEST_F(MaskFile, HoldsTheMostTokensThatIndicesCount) {
  const AttentionMask wide = load(npy_mask("(1, 1, 1, 65535)", std::string(65535, '\0')));
  const hw::SparseHead head = wide.head(0, 0);
  EXPECT_NO_THROW(hw::check_sparse_head(head));
  EXPECT_EQ(head.kept(), 65535U);
  const AttentionMask tall = load(npy_mask("(1, 1, 65535, 1)", std::string(65535, '\0')));
  EXPECT_EQ(tall.head(0, 0).row_indices.back(), 65534U);
}

TEST_F(MaskFile, IsRefusedWithAnotherShapeOrType) {
  EXPECT_EQ(error_of(npy_mask("()", "\1")),
            "shape []: expected four dimensions: layers, heads, queries, keys");
  EXPECT_EQ(error_of(npy_mask("(4,)", "\1\1\1\1")),
            "shape [4]: expected four dimensions: layers, heads, queries, keys");
  EXPECT_EQ(error_of(npy_mask("(1, 2, 2)", "\1\1\1\1")),
            "shape [1, 2, 2]: expected four dimensions: layers, heads, queries, keys");
  EXPECT_EQ(error_of(npy_mask("(1, 1, 1, 2, 2)", "\1\1\1\1")),
            "shape [1, 1, 1, 2, 2]: expected four dimensions: layers, heads, queries, keys");
  EXPECT_EQ(error_of(npy_mask("(1, 0, 2, 2)", "")),
            "shape [1, 0, 2, 2]: expected at least 1 layer, head, query and key");
  EXPECT_EQ(error_of(npy_mask("(1, 1, 1, 65536)", std::string(65536, '\0'))),
            "shape [1, 1, 1, 65536]: expected at most 65535 tokens");
  EXPECT_EQ(error_of(npy_mask("(1, 1, 65536, 1)", std::string(65536, '\0'))),
            "shape [1, 1, 65536, 1]: expected at most 65535 tokens");
  EXPECT_EQ(error_of(npy_floats("(1, 1, 1, 1)", {1})), "elements are F32, expected bool");
  EXPECT_EQ(error_of(npy_mask("(1, 1, 1, 2)", "\1\3")),
            "element 1: byte 3 as bool, expected 0 or 1");
}

TEST_F(MaskFile, OfDeitTinyIsSavedByteForByte) {
  const std::string path = shared_data("vitcod/deit_tiny_0.95_pruned.npy");
  if (path.empty()) GTEST_SKIP() << "NOT TESTED: the DeiT-Tiny mask, its file is not there";
  const AttentionMask mask = load_mask(Npy::open(path));
  EXPECT_EQ(mask.shape(), (AttentionShape{12, 3, 197, 197}));
  EXPECT_EQ(mask.kept_count(), 74399U);
  EXPECT_NEAR(mask.sparsity(), 0.946748, 5e-7);
  EXPECT_EQ(mask.first_empty_row(), std::nullopt);
  save_mask(mask, directory_.path("copy.npy"));
  EXPECT_TRUE(read_file(directory_.path("copy.npy")) == read_file(path));
}

// The masks of the models that come with Systole, made again from the attention that is kept.

struct MaskCase {
  const char* model;
  double sparsity;
  std::size_t margin;
};

class EmbeddedMasks : public ::testing::TestWithParam<MaskCase> {};

TEST_P(EmbeddedMasks, AreThoseOfTheRule) {
  const auto& [model, sparsity, margin] = GetParam();
  const RankedMaps maps(Npy::open(source_path("traces/data/vit65_attention.npy")), margin);
  const double theta = find_theta(maps, sparsity, true);
  const std::string path = checkpoint_path(model);
  EXPECT_EQ(theta, std::stod(Safetensors::open(path).metadata().at("theta")));
  const AttentionMask mask = maps.mask(theta, true);
  std::size_t cell = 0;
  for (const FloatBlock& block : load_vit_checkpoint(path).blocks) {
    for (const std::uint8_t kept : block.keep) {
      ASSERT_EQ(mask.kept(cell), kept != 0) << cell;
      ++cell;
    }
  }
  EXPECT_EQ(cell, mask.shape().cells());
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddedMasks,
                         ::testing::Values(MaskCase{"vit65-sparse80", 0.80, 1},
                                           MaskCase{"vit65-sparse90", 0.90, 1},
                                           MaskCase{"vit65-sparse95", 0.95, 0}),
                         [](const auto& model) {
                           return model_test_name({model.param.model, model.index});
                         });

}  // namespace
}  // namespace systole::model

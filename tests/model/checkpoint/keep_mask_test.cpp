#include "model/checkpoint/keep_mask.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hw/function/softmax.h"
#include "model/build/encoder_graph.h"
#include "model/float/float_vit.h"
#include "model/graph/reference.h"
#include "model/integer/integer_model.h"
#include "model/quantise/calibration.h"
#include "model/quantise/quantiser.h"
#include "tests/model/tiny_pictures.h"
#include "tests/model/tiny_vit.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

/// A tiny network with a mask: head 0 the diagonal and key 0, head 1 keys 1 to 4.
class MaskedVit : public ::testing::Test {
 protected:
  MaskedVit() { tiny_.add_mask(rows_); }

  VitCheckpoint checkpoint() {
    return load_vit_checkpoint(tiny_.write(directory_.path("tiny.safetensors")));
  }
  void expect_error(const std::string& part) {
    const std::string text = input_error_of([&] { checkpoint(); });
    EXPECT_NE(text.find(directory_.path("tiny.safetensors") +
                        ": tensor 'blocks.0.attn.keep_mask': " + part),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
  void set_mask(const std::vector<std::size_t>& shape, const std::vector<std::uint8_t>& rows) {
    tiny_.tensor("blocks.0.attn.keep_mask") =
        make_tensor("blocks.0.attn.keep_mask", FileDtype::kU8, shape, rows);
  }

  TempDirectory directory_;
  TinyVit tiny_;
  std::vector<std::uint8_t> rows_{1, 3, 5, 9, 17, 30, 30, 30, 30, 30};
};

TEST_F(MaskedVit, BitsBecomeCells) {
  const std::vector<std::uint8_t> keep = checkpoint().blocks[0].keep;
  ASSERT_EQ(keep.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(keep[i], (rows_[i / 5] >> (i % 5)) & 1) << i;
  tiny_.remove("blocks.0.attn.keep_mask");
  EXPECT_TRUE(checkpoint().blocks[0].keep.empty());
}

TEST_F(MaskedVit, RefusesBadMasks) {
  set_mask({2, 5, 1}, {1, 3, 5, 9, 17, 30, 30, 0, 30, 30});
  expect_error("head 1, row 2: keeps no key, expected one or more");
  set_mask({2, 5, 1}, {1, 3, 5, 9, 17 + 32, 30, 30, 30, 30, 30});
  expect_error("head 0, row 4: bits after the last key are set, expected zeros");
  // Nothing but a spare bit is no key.
  set_mask({2, 5, 1}, {128, 3, 5, 9, 17, 30, 30, 30, 30, 30});
  expect_error("head 0, row 0: keeps no key");
  set_mask({1, 5, 1}, {1, 3, 5, 9, 17});
  expect_error("shape is [1, 5, 1], expected [2, 5, 1]");
  set_mask({2, 5, 2}, std::vector<std::uint8_t>(20, 1));
  expect_error("shape is [2, 5, 2], expected [2, 5, 1]");
  tiny_.tensor("blocks.0.attn.keep_mask") = make_tensor("blocks.0.attn.keep_mask", FileDtype::kI8,
                                                        {2, 5, 1}, std::vector<std::int8_t>(10, 1));
  expect_error("");
}

TEST_F(MaskedVit, MaskOfABlockThatDoesNotExist) {
  tiny_.tensors.push_back(make_tensor("blocks.1.attn.keep_mask", FileDtype::kU8, {2, 5, 1}, rows_));
  EXPECT_NE(input_error_of([&] { checkpoint(); }).find("'blocks.1.attn.keep_mask': not part of"),
            std::string::npos);
}

TEST_F(MaskedVit, PrunedKeysHaveNoInfluence) {
  // Head 1 sees no key 0: its context is what the other values make it, whatever value 0 is.
  const FloatVit vit(checkpoint());
  Calibration shown;
  const Dataset data = tiny_pictures();
  static_cast<void>(vit.logits(patches_of(data, 1, vit.shape()), &shown));
  // Row 0 of head 0 keeps key 0 alone, and all rows do with this mask.
  set_mask({2, 5, 1}, std::vector<std::uint8_t>(10, 1));
  Calibration only_first;
  static_cast<void>(FloatVit(checkpoint()).logits(patches_of(data, 1, vit.shape()), &only_first));
  // Then every context is the value of the class token, which is the same for every picture.
  Calibration other_picture;
  static_cast<void>(
      FloatVit(checkpoint()).logits(patches_of(data, 3, vit.shape()), &other_picture));
  EXPECT_EQ(only_first.channels(Site::kContext, 0), other_picture.channels(Site::kContext, 0));
  EXPECT_NE(only_first.channels(Site::kContext, 0), shown.channels(Site::kContext, 0));
}

TEST_F(MaskedVit, SoftmaxOfTheGraphIsThatWithAKeepMask) {
  const Dataset data = tiny_pictures();
  for (const hw::SoftmaxMode mode : {hw::SoftmaxMode::kDeferred, hw::SoftmaxMode::kNormalisedFloor,
                                     hw::SoftmaxMode::kNormalisedRound}) {
    QuantiserOptions options;
    options.datapath.softmax = mode;
    const IntegerVit vit = quantise(checkpoint(), data, options);
    const Graph graph = make_vit_graph(vit);
    Reference reference(graph);
    reference.set_input("patches", patches_of(data, 2, vit.shape));
    reference.run();
    hw::SoftmaxConstants constants = hw::make_softmax_constants(1.0, {mode});
    constants.score = vit.encoder.blocks[0].score;
    for (std::size_t head = 0; head < 2; ++head) {
      const std::string prefix = "blocks.0.attn.head" + std::to_string(head) + ".";
      const std::vector<std::int32_t> scores = reference.values(prefix + "scores");
      const std::vector<std::int32_t> codes = reference.values(prefix + "softmax");
      for (std::size_t row = 0; row < 5; ++row) {
        std::vector<std::int32_t> expected(5);
        const std::uint32_t sum = hw::softmax_row(
            scores.data() + row * 5, vit.encoder.blocks[0].keep.data() + (head * 5 + row) * 5, 5,
            constants, expected.data());
        for (std::size_t key = 0; key < 5; ++key) EXPECT_EQ(codes[row * 5 + key], expected[key]);
        if (mode == hw::SoftmaxMode::kDeferred) {
          EXPECT_EQ(reference.values(prefix + "row_sum")[row], static_cast<std::int32_t>(sum));
        }
      }
    }
  }
}

TEST_F(MaskedVit, IntegerModelCarriesTheMask) {
  const IntegerVit vit = quantise(checkpoint(), tiny_pictures());
  const std::string path = directory_.path("tiny.int8.safetensors");
  save_integer_vit(vit, path);
  const IntegerVit again = load_integer_vit(path);
  EXPECT_EQ(again.encoder.blocks[0].keep, checkpoint().blocks[0].keep);
  const std::string copy = directory_.path("copy.safetensors");
  save_integer_vit(again, copy);
  EXPECT_EQ(read_file(copy), read_file(path));
  const Safetensors file = Safetensors::open(path);
  EXPECT_EQ(file.copy<std::uint8_t>("blocks.0.attn.keep_mask"), rows_);
}

TEST_F(MaskedVit, IntegerModelsWithBadMasks) {
  const std::string path = directory_.path("tiny.int8.safetensors");
  const auto error = [&](auto spoil) {
    IntegerVit vit = quantise(checkpoint(), tiny_pictures());
    spoil(vit.encoder.blocks[0]);
    save_integer_vit(vit, path);
    return input_error_of([&] { return load_integer_vit(path); });
  };
  EXPECT_EQ(
      error([](IntegerBlock& block) { std::fill_n(block.keep.begin() + 15, 5, std::uint8_t{0}); }),
      path +
          ": tensor 'blocks.0.attn.keep_mask': head 0, row 3: keeps no key, expected one "
          "or more");
  EXPECT_EQ(error([](IntegerBlock& block) {
              block.score.multiplier = 0;
            }).find(path + ": blocks.0.attn.keep_mask: a pruned score needs a multiplier"),
            0U);
}

TEST_F(MaskedVit, NarrowMultipliersHaveNoRoomForAMask) {
  QuantiserOptions options;
  options.datapath.multiplier_bits = 8;
  const std::string text =
      input_error_of([&] { return quantise(checkpoint(), tiny_pictures(), options); });
  EXPECT_NE(text.find("blocks.0.attn.keep_mask: a pruned score needs a multiplier beyond 8 bits"),
            std::string::npos)
      << text;
}

TEST_F(MaskedVit, GraphRefusesAMaskOfAnotherSize) {
  IntegerVit vit = quantise(checkpoint(), tiny_pictures());
  vit.encoder.blocks[0].keep.resize(25);
  EXPECT_THROW(static_cast<void>(make_vit_graph(vit)), std::invalid_argument);
}

}  // namespace
}  // namespace systole::model

#include "model/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/format/safetensors_writer.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Bytes = std::vector<std::uint8_t>;

TensorData u8_tensor(const std::string& name, std::vector<std::size_t> shape, const Bytes& values) {
  return make_tensor(name, FileDtype::kU8, std::move(shape), values);
}

/// A binary PGM of 8 x 8 samples that all have the value `sample`.
std::string flat_pgm(int max_value, char sample) {
  return "P5 8 8 " + std::to_string(max_value) + "\n" + std::string(64, sample);
}

class DatasetTest : public testing::Test {
 protected:
  std::string safetensors(const std::vector<TensorData>& tensors) const {
    const std::string path = directory_.path("digits.safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  static std::string error_of(const std::string& path, const PictureFormat& format = {}) {
    return input_error_of([&] { load_images(path, format); });
  }

  TempDirectory directory_;
};

TEST_F(DatasetTest, LoadsTheSplitThatIsAskedFor) {
  const std::string path = safetensors(
      {u8_tensor("test_images", {2, 2, 2}, {0, 1, 2, 3, 4, 16, 5, 6}),
       u8_tensor("test_labels", {2}, {0, 9}), u8_tensor("calib_images", {1, 2, 2}, {5, 6, 7, 8}),
       u8_tensor("images", {1, 2, 2}, {7, 0, 0, 0}), u8_tensor("labels", {1}, {7})});
  const PictureFormat format{1, 2};
  const Dataset test = load_images(path, format);
  EXPECT_EQ(test.count, 2U);
  EXPECT_EQ(test.channels, 1U);
  EXPECT_EQ(test.height, 2U);
  EXPECT_EQ(test.width, 2U);
  EXPECT_THAT(test.samples, ElementsAre(0, 1, 2, 3, 4, 16, 5, 6));
  EXPECT_THAT(test.labels, ElementsAre(0, 9));
  const Dataset calib = load_images(path, format, "calib");
  EXPECT_THAT(calib.samples, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(calib.labels, IsEmpty()) << "the labels of the plain images are not those of calib";
  const Dataset other = load_images(path, format, "other");
  EXPECT_THAT(other.samples, ElementsAre(7, 0, 0, 0));
  EXPECT_THAT(other.labels, ElementsAre(7));
}

TEST_F(DatasetTest, LoadsChannelsAndManyClasses) {
  const TensorData images = u8_tensor("images", {2, 3, 1, 1}, {0, 1, 2, 253, 254, 255});
  const PictureFormat format{3, 1, kByteLevels, 70000};
  const Dataset data =
      load_images(safetensors({images, make_tensor("labels", FileDtype::kI64, {2},
                                                   std::vector<std::int64_t>{69999, 300})}),
                  format);
  EXPECT_EQ(data.channels, 3U);
  EXPECT_THAT(data.labels, ElementsAre(69999, 300));
  EXPECT_THAT(data.image(1).values, ElementsAre(253, 254, 255));
  EXPECT_EQ(data.image(1).channels, 3U);
  const auto error_with_label = [&](std::int64_t label) {
    return error_of(safetensors({images, make_tensor("labels", FileDtype::kI64, {2},
                                                     std::vector<std::int64_t>{0, label})}),
                    format);
  };
  EXPECT_THAT(error_with_label(70000), HasSubstr("element 1 is 70000, expected 0..69999"));
  EXPECT_THAT(error_with_label(-1), HasSubstr("element 1 is -1, expected 0..69999"));
  const Dataset small =
      load_images(safetensors({images, make_tensor("labels", FileDtype::kU16, {2},
                                                   std::vector<std::uint16_t>{65535, 1})}),
                  format);
  EXPECT_THAT(small.labels, ElementsAre(65535, 1));
}

TEST_F(DatasetTest, OneChannelMayHaveItsDimension) {
  const std::string path = safetensors({u8_tensor("images", {1, 1, 2, 2}, {0, 1, 2, 3})});
  EXPECT_THAT(load_images(path, {1, 2}).samples, ElementsAre(0, 1, 2, 3));
}

TEST_F(DatasetTest, GivesSinglePictures) {
  const Dataset data{2, 1, 2, 3, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {}};
  const Image image = data.image(1);
  EXPECT_EQ(image.channels, 1U);
  EXPECT_EQ(image.height, 2U);
  EXPECT_EQ(image.width, 3U);
  EXPECT_THAT(image.values, ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THROW(data.image(2), std::out_of_range);
}

TEST_F(DatasetTest, RefusesBadTensors) {
  const PictureFormat one{1, 1};
  const auto error_with = [&](const std::vector<TensorData>& tensors) {
    return error_of(safetensors(tensors), one);
  };
  const TensorData good = u8_tensor("images", {2, 1, 1}, {0, 16});
  EXPECT_THAT(error_with({}), HasSubstr("no tensor 'test_images' or 'images'"));
  EXPECT_THAT(error_with({u8_tensor("images", {2}, {0, 0})}),
              HasSubstr("shape is [2], expected [count, channels, height, width]"));
  EXPECT_THAT(error_with({u8_tensor("images", {0, 8, 8}, {})}), HasSubstr("none of them 0"));
  EXPECT_THAT(error_with({u8_tensor("images", {1, 8, 0}, {})}), HasSubstr("none of them 0"));
  EXPECT_THAT(error_with({u8_tensor("images", {1, 1, 1, 1, 1}, {0})}), HasSubstr("shape is"));
  EXPECT_THAT(
      error_with({make_tensor("images", FileDtype::kI8, {1, 1, 1}, std::vector<std::int8_t>{1})}),
      HasSubstr("dtype is I8, expected U8"));
  EXPECT_THAT(error_with({u8_tensor("images", {4, 1, 1}, {0, 16, 17, 255})}),
              HasSubstr("tensor 'images': element 2 is 17, expected 0..16"));
  EXPECT_THAT(error_with({good, u8_tensor("labels", {2}, {9, 10})}),
              HasSubstr("tensor 'labels': element 1 is 10, expected 0..9"));
  EXPECT_THAT(error_with({good, u8_tensor("labels", {3}, {1, 2, 3})}),
              HasSubstr("tensor 'labels': shape is [3], expected [2]"));
  EXPECT_THAT(error_with({good, u8_tensor("labels", {2, 1}, {1, 2})}),
              HasSubstr("tensor 'labels': shape is [2, 1], expected [2]"));
  EXPECT_EQ(error_with({good, u8_tensor("labels", {2}, {0, 9})}), "no error");
}

TEST_F(DatasetTest, RefusesAnotherSizeOrNumberOfChannels) {
  const std::string path = safetensors({u8_tensor("images", {1, 3, 1, 2}, Bytes(6))});
  const std::string found = path + ": pictures of 3 x 1 x 2 samples (channels, rows, columns), ";
  EXPECT_EQ(error_of(path), found + "the model expects 1 x 8 x 8");
  EXPECT_EQ(error_of(path, {3, 2}), found + "the model expects 3 x 2 x 2");
  EXPECT_EQ(error_of(path, {3, 1}), found + "the model expects 3 x 1 x 1");
}

TEST_F(DatasetTest, PgmIsScaledToTheRangeOfTheDigits) {
  std::string bytes = "P5 8 8 16\n";
  for (char sample = 0; sample < 64; ++sample) bytes += static_cast<char>(sample % 17);
  const Dataset exact = load_images(directory_.write("exact.pgm", bytes), {});
  EXPECT_EQ(exact.count, 1U);
  EXPECT_EQ(exact.height, 8U);
  EXPECT_EQ(exact.width, 8U);
  EXPECT_EQ(exact.samples, Bytes(bytes.begin() + 10, bytes.end()));
  EXPECT_THAT(exact.labels, IsEmpty());
  const auto pixel_of = [&](int max_value, char sample) {
    const Dataset data = load_images(directory_.write("flat.pgm", flat_pgm(max_value, sample)), {});
    EXPECT_THAT(data.samples, Each(data.samples[0]));
    return static_cast<int>(data.samples[0]);
  };
  EXPECT_EQ(pixel_of(255, '\xFF'), 16);
  EXPECT_EQ(pixel_of(255, '\x07'), 0);  // 0.44
  EXPECT_EQ(pixel_of(255, '\x08'), 1);  // 0.502
  EXPECT_EQ(pixel_of(255, '\x80'), 8);  // 8.03
  EXPECT_EQ(pixel_of(32, '\x01'), 1);   // 0.5, a tie
  EXPECT_EQ(pixel_of(1, '\x01'), 16);
}

TEST_F(DatasetTest, PpmIsColour) {
  directory_.write("b.ppm", "P6 1 1 255 ABC");
  directory_.write("a.ppm", "P6 1 1 51 \x01\x02\x33");
  const Dataset data = load_images(directory_.path(), {3, 1, kByteLevels});
  EXPECT_EQ(data.count, 2U);
  EXPECT_THAT(data.samples, ElementsAre(5, 10, 255, 'A', 'B', 'C'));
  EXPECT_THAT(error_of(directory_.path("b.ppm")), HasSubstr("3 x 1 x 1 samples"));
}

TEST_F(DatasetTest, DirectoryGivesItsPicturesByName) {
  directory_.write("b.pgm", flat_pgm(16, 2));
  directory_.write("a.pgm", flat_pgm(16, 1));
  directory_.write("c.pgm", flat_pgm(16, 3));
  directory_.write("README.txt", "not a picture");
  const Dataset data = load_images(directory_.path(), {});
  ASSERT_EQ(data.count, 3U);
  EXPECT_EQ(data.samples.size(), 3U * 64U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(data.image(i).values, Each(static_cast<std::int32_t>(i + 1)));
  }
}

TEST_F(DatasetTest, RefusesBadPictures) {
  EXPECT_THAT(error_of(directory_.path()), HasSubstr("the directory has no *.pgm or *.ppm file"));
  const std::string small = directory_.write("small.pgm", "P5 1 1 16\n\1");
  EXPECT_EQ(
      error_of(small),
      small +
          ": pictures of 1 x 1 x 1 samples (channels, rows, columns), the model expects 1 x 8 x 8");
  EXPECT_THAT(error_of(directory_.path()), StartsWith(small + ": "));
  EXPECT_THAT(error_of(directory_.path("none.pgm")), HasSubstr("no such file"));
  EXPECT_THAT(error_of(directory_.write("none", "")), HasSubstr("the file is empty"));
  EXPECT_THAT(error_of(directory_.write("text", "P2 8 8 16")), HasSubstr("header length"))
      << "what is no binary PGM is taken for safetensors";
  std::filesystem::create_directory(directory_.path("a.pgm"));
  EXPECT_THAT(error_of(directory_.path()),
              HasSubstr("a.pgm: cannot read: is a directory, expected a file"));
}

}  // namespace
}  // namespace systole::model

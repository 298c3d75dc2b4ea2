#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/number/half.h"
#include "model/format/safetensors.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

/// --outputs of commands other than run: values that went in and came out.
namespace systole {
namespace {

using nlohmann::json;

template <typename T>
std::vector<T> values_of(const model::Safetensors& file, const std::string& name) {
  const model::TensorView view = file.tensor(name);
  std::vector<T> copy(view.bytes / sizeof(T));
  std::memcpy(copy.data(), view.data, view.bytes);
  return copy;
}

TEST(Outputs, OfAProductAreThoseOfEveryMachine) {
  const TempDirectory directory;
  std::vector<std::vector<std::uint8_t>> found;
  for (const char* machine : {"tiny", "transformer", "gemmini"}) {
    const std::string path = directory.path(std::string(machine) + ".safetensors");
    EXPECT_EQ(json_of({"matmul", "9x17x33", "-m", machine, "--int32", "--outputs",
                       path})["mismatched_bytes"],
              0);
    const model::Safetensors file = model::Safetensors::open(path);
    ASSERT_EQ(file.names().size(), 2U);
    for (const auto& name : file.names()) {
      const auto& shape = file.tensor(name).shape;
      EXPECT_THAT(shape, testing::ElementsAre(1, 9, shape.back() == 33 ? 33 : 17)) << name;
      found.push_back(values_of<std::uint8_t>(file, std::string(name)));
    }
  }
  for (std::size_t i = 2; i < found.size(); ++i) EXPECT_EQ(found[i], found[i % 2]);
  EXPECT_NE(found[0], std::vector<std::uint8_t>(found[0].size(), 0));
}

TEST(Outputs, OfAttentionAreOperandsAndResults) {
  const TempDirectory directory;
  const std::string path = directory.path("a.safetensors"), other = directory.path("b.safetensors");
  const std::string line =
      "attention -m vitcod --tokens 20 --heads 3 --layers 2 --dim 16 --v-dim 8 --latent-heads 2 "
      "--outputs ";
  static_cast<void>(json_of(words_of(line + path)));
  static_cast<void>(json_of(words_of(line + other + " --no-reorder")));
  const model::Safetensors file = model::Safetensors::open(path);
  const model::Safetensors again = model::Safetensors::open(other);
  ASSERT_EQ(file.names().size(), 8U);
  EXPECT_THAT(file.tensor("layers.1.query").shape, testing::ElementsAre(20, 32));
  EXPECT_THAT(file.tensor("layers.1.value").shape, testing::ElementsAre(20, 24));
  const auto out = values_of<std::int8_t>(file, "layers.1.output");
  EXPECT_EQ(out, values_of<std::int8_t>(again, "layers.1.output")) << "whatever the order of keys";
  // An average of a head's values is between its extremes.
  const auto value = values_of<std::int8_t>(file, "layers.1.value");
  ASSERT_EQ(out.size(), value.size());
  std::size_t nonzero = 0;
  for (std::size_t col = 0; col < 24; ++col) {
    int lowest = 127, highest = -128;
    for (std::size_t row = 0; row < 20; ++row) {
      lowest = std::min<int>(lowest, value[row * 24 + col]);
      highest = std::max<int>(highest, value[row * 24 + col]);
    }
    for (std::size_t row = 0; row < 20; ++row) {
      EXPECT_GE(out[row * 24 + col], lowest - 1);
      EXPECT_LE(out[row * 24 + col], highest + 1);
      nonzero += out[row * 24 + col] != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(nonzero, 240U);
}

// The likeliest token after each position is the next one.
TEST(Outputs, OfATextAreItsTokensAndLogits) {
  const TempDirectory directory;
  const std::string path = directory.path("text.safetensors");
  const json result = json_of({"generate", "--cores", "2", "--model", "kjv", "-p", "And the ", "-n",
                               "6", "--outputs", path});
  const model::Safetensors file = model::Safetensors::open(path);
  const auto prompt = values_of<std::int32_t>(file, "input_ids");
  const auto tokens = values_of<std::int32_t>(file, "tokens");
  const auto positions = values_of<std::int32_t>(file, "positions");
  const auto bits = values_of<std::uint16_t>(file, "logits");
  ASSERT_EQ(tokens.size(), 6U);
  ASSERT_EQ(prompt.size(), 8U);
  const std::size_t vocabulary = file.tensor("logits").shape.back();
  ASSERT_EQ(bits.size(), positions.size() * vocabulary);
  std::size_t compared = 0;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const std::size_t next = static_cast<std::size_t>(positions[row]) + 1 - prompt.size();
    if (static_cast<std::size_t>(positions[row]) + 1 < prompt.size() || next >= tokens.size()) {
      continue;
    }
    const auto first = bits.begin() + static_cast<std::ptrdiff_t>(row * vocabulary);
    const auto largest =
        std::max_element(first, first + static_cast<std::ptrdiff_t>(vocabulary),
                         [](std::uint16_t a, std::uint16_t b) {
                           return hw::to_float(hw::Half{a}) < hw::to_float(hw::Half{b});
                         });
    EXPECT_EQ(largest - first, tokens[next]) << row;
    ++compared;
  }
  EXPECT_EQ(compared, 6U);
  EXPECT_EQ(result["output_tokens"], 6);
}

}  // namespace
}  // namespace systole

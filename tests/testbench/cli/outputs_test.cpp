#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

/// What the core says of a product: sums in plain loops, requantised as its page says.
std::vector<std::int8_t> product_of(const std::vector<std::int8_t>& a,
                                    const std::vector<std::int8_t>& b,
                                    const std::vector<std::int32_t>& bias, std::size_t columns,
                                    const std::int32_t* by) {
  const std::size_t depth = b.size() / columns;
  std::vector<std::int8_t> out(a.size() / depth * columns);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t sum = bias.empty() ? 0 : bias[i % columns];
    for (std::size_t k = 0; k < depth; ++k) {
      sum += a[i / columns * depth + k] * b[k * columns + i % columns];
    }
    const double scaled = static_cast<double>(sum * by[0]) / static_cast<double>(1LL << by[1]);
    out[i] = static_cast<std::int8_t>(std::clamp(std::floor(scaled + 0.5) + by[2], -128.0, 127.0));
  }
  return out;
}

TEST(Outputs, OfAProductOnAStreamingCoreAreWhatItsOperandsGive) {
  const TempDirectory directory;
  const std::string path = directory.path("p.safetensors");
  EXPECT_EQ(json_of({"matmul", "64x128x192", "-m", "ita", "--bias", "--outputs",
                     path})["mismatched_bytes"],
            0);
  const model::Safetensors file = model::Safetensors::open(path);
  EXPECT_THAT(file.names(), testing::UnorderedElementsAre("product.a", "product.b", "product.bias",
                                                          "product.output"));
  EXPECT_THAT(file.tensor("product.a").shape, testing::ElementsAre(64, 192));
  EXPECT_THAT(file.tensor("product.b").shape, testing::ElementsAre(192, 128));
  // Whatever the constants are: a larger sum gives no smaller result.
  const auto a = values_of<std::int8_t>(file, "product.a");
  const auto b = values_of<std::int8_t>(file, "product.b");
  const auto bias = values_of<std::int32_t>(file, "product.bias");
  const auto out = values_of<std::int8_t>(file, "product.output");
  std::vector<std::pair<std::int64_t, int>> pairs;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t sum = bias[i % 128];
    for (std::size_t k = 0; k < 192; ++k) sum += a[i / 128 * 192 + k] * b[k * 128 + i % 128];
    pairs.emplace_back(sum, out[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  for (std::size_t i = 1; i < pairs.size(); ++i) EXPECT_LE(pairs[i - 1].second, pairs[i].second);
  EXPECT_LT(pairs.front().second, -20);
  EXPECT_GT(pairs.back().second, 20);
}

TEST(Outputs, OfALayerAreWhatItsOperandsGive) {
  const TempDirectory directory;
  const std::string path = directory.path("l.safetensors");
  const std::string line =
      "layer -m ita --tokens 64 --d 128 --dim 64 --heads 2 --ffn 192 --activation relu --outputs ";
  EXPECT_EQ(json_of(words_of(line + path))["mismatched_bytes"], 0);
  EXPECT_THAT(model::Safetensors::open(path).names(),
              testing::UnorderedElementsAre("attention.x_q", "attention.x_kv",
                                            "attention.head0.output", "attention.head1.output",
                                            "feed-forward.x", "feed-forward.output"));
  static_cast<void>(json_of(words_of(line + path, {"--tensors", ".*"})));
  const model::Safetensors file = model::Safetensors::open(path);
  const auto codes = [&](const std::string& name) { return values_of<std::int8_t>(file, name); };
  const auto words = [&](const std::string& name) { return values_of<std::int32_t>(file, name); };
  for (const std::string head : {"attention.head0.", "attention.head1."}) {
    const auto by = words(head + "requantisers");
    ASSERT_EQ(by.size(), 18U);
    const auto projected = [&](const std::string& x, const std::string& part, std::size_t phase,
                               std::size_t columns) {
      return product_of(codes(x), codes(head + part + ".weight"), words(head + part + ".bias"),
                        columns, &by[3 * phase]);
    };
    EXPECT_EQ(codes(head + "query"), projected("attention.x_q", "query", 0, 64));
    EXPECT_EQ(codes(head + "key"), projected("attention.x_kv", "key", 1, 64));
    EXPECT_EQ(codes(head + "value"), projected("attention.x_kv", "value", 2, 64));
    const auto key = codes(head + "key");
    std::vector<std::int8_t> turned(key.size());
    for (std::size_t i = 0; i < key.size(); ++i) turned[i % 64 * 64 + i / 64] = key[i];
    EXPECT_EQ(codes(head + "scores"), product_of(codes(head + "query"), turned, {}, 64, &by[9]));
    EXPECT_EQ(file.tensor(head + "probabilities").dtype, model::FileDtype::kU8);
    EXPECT_EQ(codes(head + "output"), projected(head + "context", "proj", 5, 128));
  }
  const auto by = words("feed-forward.requantisers");
  auto hidden = product_of(codes("feed-forward.x"), codes("feed-forward.fc1.weight"),
                           words("feed-forward.fc1.bias"), 192, by.data());
  for (std::int8_t& value : hidden) value = std::max<std::int8_t>(value, 0);
  EXPECT_EQ(codes("feed-forward.hidden"), hidden);
  EXPECT_EQ(codes("feed-forward.output"), product_of(hidden, codes("feed-forward.fc2.weight"),
                                                     words("feed-forward.fc2.bias"), 128, &by[3]));
}

TEST(Outputs, OfTokensAreThoseOfTheTextAtOnce) {
  const TempDirectory directory;
  const std::string steps = directory.path("s.safetensors"),
                    whole = directory.path("w.safetensors");
  const std::string line =
      "run -m transformer --model gpt2 --length 5 --layers 1 --d 64 --heads 2 --ffn 128 "
      "--tensors blocks\\.0\\.(norm2|mlp.residual) --outputs ";
  EXPECT_EQ(json_of(words_of(line + steps + " --decode --check"))["mismatched_bytes"], 0);
  static_cast<void>(json_of(words_of(line + whole)));
  const model::Safetensors a = model::Safetensors::open(steps), b = model::Safetensors::open(whole);
  for (const char* name : {"blocks.0.mlp.residual"}) {
    EXPECT_THAT(a.tensor(name).shape, testing::ElementsAre(5, 1, 64));
    EXPECT_THAT(b.tensor(name).shape, testing::ElementsAre(1, 5, 64));
    EXPECT_EQ(values_of<std::uint8_t>(a, name), values_of<std::uint8_t>(b, name));
  }
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

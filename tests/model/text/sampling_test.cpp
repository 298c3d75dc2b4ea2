#include "model/text/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/text/text_words.h"
#include "support/input_error.h"

namespace systole::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<hw::Half> halves(const std::vector<double>& values) {
  std::vector<hw::Half> result;
  for (const double value : values) result.push_back(hw::to_half(value));
  return result;
}

/// How often each token comes in `draws`.
std::vector<int> histogram(const Sampler::Options& options, const std::vector<hw::Half>& logits,
                           int draws) {
  Sampler sampler(options);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts.at(sampler.token(logits));
  return counts;
}

std::size_t greedy_token(const std::vector<hw::Half>& logits) {
  Sampler::Options greedy;
  greedy.top_k = 1;
  return Sampler(greedy).token(logits);
}

TEST(Greedy, TakesTheFirstOfTheLargest) {
  EXPECT_EQ(greedy_token(halves({-1, 3, 2, 3})), 1U);
  EXPECT_EQ(greedy_token(halves({-4})), 0U);
  EXPECT_EQ(greedy_token(halves({-0.0, 0.0})), 0U);  // equal as numbers
  EXPECT_EQ(greedy_token(halves({-kInfinity, -65504, -kInfinity})), 1U);
  EXPECT_EQ(greedy_token(halves({65504, kInfinity, kInfinity})), 1U);
}

TEST(Greedy, RefusesWhatIsNoNumber) {
  EXPECT_THAT(input_error_of([] {
                return greedy_token(halves({0, 1, std::nan("")}));
              }),
              HasSubstr("token 2 is not a number"));
  EXPECT_THROW(static_cast<void>(greedy_token({})), std::invalid_argument);
}

TEST(Sampler, DrawsBySoftmaxOfTheTemperature) {
  const std::vector<double> logits{1.0, -0.5, 2.0, 0.0};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    double total = 0;
    for (const double logit : logits) total += std::exp(logit / temperature);
    constexpr int kDraws = 40000;
    const auto counts = histogram({temperature, 0, 11}, halves(logits), kDraws);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double share = std::exp(logits[i] / temperature) / total;
      const double deviation = std::sqrt(kDraws * share * (1.0 - share));
      EXPECT_NEAR(counts[i], kDraws * share, 4.5 * deviation) << temperature << " " << i;
    }
  }
}

TEST(Sampler, LeavesOutAllButTheLargest) {
  const auto logits = halves({1.0, 0.5, 1.0, 0.9, 1.0});
  const auto counts = histogram({1.0, 2, 3}, logits, 2000);
  EXPECT_GT(counts[0], 850);  // the smaller ids of equals
  EXPECT_GT(counts[2], 850);
  EXPECT_EQ(counts[0] + counts[2], 2000);
  EXPECT_EQ(histogram({1.0, 1, 3}, logits, 50)[0], 50);
  EXPECT_EQ(histogram({1.0, 9, 3}, logits, 2000), histogram({1.0, 0, 3}, logits, 2000));
  EXPECT_EQ(histogram({1e-300, 0, 3}, halves({1, 2, 1.5}), 50)[1], 50);
}

TEST(Sampler, InfinityLeavesNothingToTheRest) {
  EXPECT_EQ(histogram({1.0, 0, 3}, halves({0, kInfinity, 65504}), 50)[1], 50);
  EXPECT_EQ(histogram({1.0, 0, 3}, halves({-kInfinity, -65504}), 50)[1], 50);
  const auto counts = histogram({1.0, 0, 3}, halves({-kInfinity, -kInfinity}), 1000);
  EXPECT_NEAR(counts[0], 500, 80);
}

TEST(Sampler, SameSeedSameTokensOnEveryHost) {
  std::vector<double> logits;
  for (int i = 0; i < 100; ++i) logits.push_back(2.0 * std::sin(i));
  Sampler sampler({0.8, 40, 2022});
  std::vector<std::size_t> found;
  for (int i = 0; i < 12; ++i) found.push_back(sampler.token(halves(logits)));
  // Computed apart: engine by its definition, softmax in extended precision.
  const std::vector<std::size_t> expected{20, 77, 8, 39, 82, 96, 96, 39, 32, 58, 20, 46};
  EXPECT_EQ(found, expected);
  Sampler other({0.8, 40, 2023});
  std::vector<std::size_t> others;
  for (int i = 0; i < 12; ++i) others.push_back(other.token(halves(logits)));
  EXPECT_NE(found, others);
}

TEST(Sampler, RefusesATemperatureOutOfRange) {
  for (const double temperature : {0.0, -1.0, kInfinity, std::nan("")}) {
    EXPECT_THAT(input_error_of([&] {
                  Sampler({temperature, 0, 1});
                }),
                HasSubstr("expected a finite number above 0"));
  }
}

TEST(PortableExp, IsCloseToTheExponential) {
  for (double x = 0.0; x > -699.0; x -= 0.0371) {
    const double exact = std::exp(x);
    ASSERT_NEAR(portable_exp(x), exact, 1e-14 * exact) << x;
  }
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-700.0), 0.0);
  EXPECT_EQ(portable_exp(-kInfinity), 0.0);
}

TEST(TextWords, TakesOneBlankAlong) {
  EXPECT_THAT(split_words("In the beginning"), ElementsAre("In", " the", " beginning"));
  EXPECT_THAT(split_words(" a"), ElementsAre(" a"));
  EXPECT_THAT(split_words("   a"), ElementsAre("  ", " a"));
  EXPECT_THAT(split_words("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(split_words("a "), ElementsAre("a", " "));
  EXPECT_THAT(split_words(""), ElementsAre());
}

TEST(TextWords, OtherWhiteSpaceStandsAlone) {
  EXPECT_THAT(split_words("a\nb"), ElementsAre("a", "\n", "b"));
  EXPECT_THAT(split_words("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(split_words("a\n b"), ElementsAre("a", "\n", " b"));
  EXPECT_THAT(split_words("a \nb"), ElementsAre("a", " ", "\n", "b"));
  EXPECT_THAT(split_words("a \t\r\n"), ElementsAre("a", " \t\r\n"));
}

TEST(TextWords, PartsLettersDigitsAndTheRest) {
  EXPECT_THAT(split_words("ab12,.!"), ElementsAre("ab", "12", ",.!"));
  EXPECT_THAT(split_words("x 12 ,. y_z"), ElementsAre("x", " 12", " ,.", " y", "_", "z"));
  EXPECT_THAT(split_words("3.14"), ElementsAre("3", ".", "14"));
}

TEST(TextWords, CutsEndingsOff) {
  EXPECT_THAT(split_words("it's we'll they've I'm he'd can't you're"),
              ElementsAre("it", "'s", " we", "'ll", " they", "'ve", " I", "'m", " he", "'d", " can",
                          "'t", " you", "'re"));
  EXPECT_THAT(split_words("'so"), ElementsAre("'s", "o"));
  EXPECT_THAT(split_words("IT'S"), ElementsAre("IT", "'", "S"));  // small letters alone
  EXPECT_THAT(split_words("x 's"), ElementsAre("x", " '", "s"));  // the blank comes first
  EXPECT_THAT(split_words("!'s"), ElementsAre("!'", "s"));
  EXPECT_THAT(split_words("'"), ElementsAre("'"));
}

TEST(TextWords, KnowsUnicode) {
  EXPECT_THAT(split_words("naïve Ελλ"), ElementsAre("naïve", " Ελλ"));
  EXPECT_THAT(split_words("日本語。"), ElementsAre("日本語", "。"));
  EXPECT_THAT(split_words("x²Ⅳ½٣"), ElementsAre("x", "²Ⅳ½٣"));
  EXPECT_THAT(split_words("a\u00a0b"), ElementsAre("a", "\u00a0", "b"));  // no-break space
  EXPECT_THAT(split_words("a \u3000\u2028b"), ElementsAre("a", " \u3000", "\u2028", "b"));
  EXPECT_THAT(split_words("a\u0085"), ElementsAre("a", "\u0085"));
  EXPECT_THAT(split_words("a\u200b"), ElementsAre("a", "\u200b"));  // no white space
  EXPECT_THAT(split_words("e\u0301"), ElementsAre("e", "\u0301"));  // a mark is no letter
  EXPECT_THAT(split_words(" 😀😀!"), ElementsAre(" 😀😀!"));
}

TEST(TextWords, TakesWhatIsNoUtf8AsTheRest) {
  EXPECT_THAT(split_words("a\xff\xfe!"), ElementsAre("a", "\xff\xfe!"));
  EXPECT_THAT(split_words("a\xc3"), ElementsAre("a", "\xc3"));
  EXPECT_THAT(split_words("\xed\xa0\x80"), ElementsAre("\xed\xa0\x80"));  // half a surrogate pair
}

TEST(TextWords, WordsAreTheText) {
  std::mt19937 engine(5);
  const std::string often = "  \n'std19a.\xc3\xa9\xe3\x80\x80";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto i = engine() % 30; i > 0; --i) {
      text += engine() % 4 == 0 ? static_cast<char>(engine()) : often[engine() % often.size()];
    }
    std::string joined;
    for (const std::string_view word : split_words(text)) {
      ASSERT_FALSE(word.empty());
      joined += word;
    }
    ASSERT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace systole::model

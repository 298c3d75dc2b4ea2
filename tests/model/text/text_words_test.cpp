#include "model/text/text_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace systole::model {
namespace {

using testing::ElementsAre;

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

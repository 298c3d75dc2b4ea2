#include "model/text/tokeniser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/text/text_words.h"
#include "support/input_error.h"
#include "support/temp_directory.h"

namespace systole::model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

/// A byte in the alphabet of vocab.json.
std::string letter(unsigned char byte) {
  const auto printable = [](unsigned b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  unsigned code = byte;
  if (!printable(byte)) {
    code = 256;
    for (unsigned b = 0; b < byte; ++b) code += printable(b) ? 0U : 1U;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3FU))};
}

std::string letters(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += letter(static_cast<unsigned char>(c));
  return text;
}

using Pair = std::pair<std::string, std::string>;  // of bytes

/// The files of a vocabulary of all bytes (id: the byte) and what `merges` make of them (from 256).
class Files {
 public:
  Files(std::initializer_list<Pair> merges) : Files(std::vector<Pair>(merges)) {}
  explicit Files(const std::vector<Pair>& merges) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      vocab[letter(static_cast<unsigned char>(byte))] = byte;
    }
    lines = "#version: 0.2\n";
    for (const auto& [left, right] : merges) {
      const std::string merged = letters(left) + letters(right);
      if (!vocab.contains(merged)) vocab[merged] = vocab.size();
      lines += letters(left) + " " + letters(right) + "\n";
    }
  }

  [[nodiscard]] std::unique_ptr<Tokeniser> load(std::size_t vocabulary) const {
    directory_.write("vocab.json", vocab.dump());
    directory_.write("merges.txt", lines);
    return find_tokeniser(directory_.path("model.safetensors"),
                          static_cast<std::uint32_t>(vocabulary));
  }
  [[nodiscard]] std::unique_ptr<Tokeniser> load() const { return load(vocab.size()); }
  [[nodiscard]] std::string error() const {
    return input_error_of([&] { return load(); });
  }

  nlohmann::json vocab = nlohmann::json::object();
  std::string lines;

 private:
  TempDirectory directory_;
};

/// Tokens of a text, each as its bytes.
std::vector<std::string> pieces(const Tokeniser& tokeniser, const std::string& text) {
  std::vector<std::string> result;
  for (const std::int32_t id : tokeniser.encode(text)) result.push_back(tokeniser.decode({id}));
  return result;
}

TEST(AsciiTokeniser, IdsAreTheCodes) {
  const auto tokeniser = make_ascii_tokeniser();
  EXPECT_EQ(tokeniser->vocabulary(), 128U);
  EXPECT_THAT(tokeniser->encode("In\n~"), ElementsAre(73, 110, 10, 126));
  EXPECT_EQ(tokeniser->decode({73, 110, 10, 126}), "In\n~");
  EXPECT_EQ(tokeniser->end_of_text(), std::nullopt);
  EXPECT_THAT(input_error_of([&] { return tokeniser->encode("caf\xc3\xa9"); }),
              HasSubstr("byte 4 is 0xc3, expected ASCII"));
  EXPECT_THROW(static_cast<void>(tokeniser->decode({128})), std::out_of_range);
  EXPECT_THROW(static_cast<void>(tokeniser->decode({-1})), std::out_of_range);
}

TEST(FindTokeniser, TakesAsciiIfNothingElseIsThere) {
  const TempDirectory directory;
  const std::string checkpoint = directory.path("model.safetensors");
  EXPECT_EQ(find_tokeniser(checkpoint, 128)->vocabulary(), 128U);
  EXPECT_THAT(input_error_of([&] { return find_tokeniser(checkpoint, 50257); }),
              AllOf(HasSubstr("vocab.json: missing"), HasSubstr("50257 tokens")));
  directory.write("vocab.json", R"({"a":0})");
  EXPECT_THAT(input_error_of([&] { return find_tokeniser(checkpoint, 1); }),
              HasSubstr("merges.txt"));
}

TEST(BytePairs, WritesBytesInGpt2sAlphabet) {
  Files files{};
  // As GPT-2's own vocabulary has them.
  for (const auto& [name, byte] :
       {std::pair("Ġ", ' '), std::pair("Ċ", '\n'), std::pair("ĉ", '\t'), std::pair("Ā", '\0'),
        std::pair("ġ", '\x7f'), std::pair("Ń", '\xad'), std::pair("ł", '\xa0'), std::pair("!", '!'),
        std::pair("é", '\xe9')}) {
    ASSERT_TRUE(files.vocab.contains(name)) << name;
    EXPECT_EQ(files.load()->decode({files.vocab[name].get<std::int32_t>()}), std::string(1, byte));
  }
}

TEST(BytePairs, MergesTheFirstInTheFileFirst) {
  const Files files{{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "w"}};
  EXPECT_THAT(pieces(*files.load(), "hello well"), ElementsAre("hello", " w", "e", "ll"));
  // "b c" is before "a b": the pair on the left has to wait.
  EXPECT_THAT(pieces(*Files{{"b", "c"}, {"a", "b"}}.load(), "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(pieces(*Files{{"a", "b"}, {"b", "c"}}.load(), "abc"), ElementsAre("ab", "c"));
  EXPECT_THAT(pieces(*Files{{"a", "a"}}.load(), "aaaaa"), ElementsAre("aa", "aa", "a"));
  EXPECT_THAT(pieces(*Files{{"a", "a"}, {"aa", "aa"}}.load(), "aaaaaaa"),
              ElementsAre("aaaa", "aa", "a"));
  // Never across words.
  EXPECT_THAT(pieces(*Files{{"a", " "}, {"a", "1"}}.load(), "a a1"),
              ElementsAre("a", " ", "a", "1"));
}

TEST(BytePairs, TakesWhatIsNotAscii) {
  const Files files{{"\xc3", "\xa9"}, {"f", "\xc3\xa9"}};
  EXPECT_THAT(pieces(*files.load(), "caf\xc3\xa9"), ElementsAre("c", "a", "f\xc3\xa9"));
  EXPECT_THAT(pieces(*files.load(), "\xa9"), ElementsAre("\xa9"));
}

TEST(BytePairs, KnowsTheEndOfText) {
  Files files{};
  EXPECT_EQ(files.load()->end_of_text(), std::nullopt);
  files.vocab["<|endoftext|>"] = 256;
  const auto tokeniser = files.load();
  EXPECT_EQ(tokeniser->end_of_text(), 256);
  EXPECT_EQ(tokeniser->encode("<|endoftext|>").size(), 13U);  // a text has only characters
}

/// The words of the published algorithm: the best pair, everywhere, until there is none.
std::vector<std::string> plain_merge(std::vector<std::string> word,
                                     const std::vector<Pair>& merges) {
  for (;;) {
    std::size_t best = merges.size();
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = std::find(merges.begin(), merges.end(), Pair(word[i], word[i + 1]));
      best = std::min(best, static_cast<std::size_t>(found - merges.begin()));
    }
    if (best == merges.size()) return word;
    std::vector<std::string> next;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (i + 1 < word.size() && Pair(word[i], word[i + 1]) == merges[best]) {
        next.push_back(word[i] + word[i + 1]);
        ++i;
      } else {
        next.push_back(word[i]);
      }
    }
    word = next;
  }
}

/// Pairs of bytes out of three and of what earlier or later pairs make of them, in random order: a
/// file need not list them in the order of their making.
std::vector<Pair> random_merges(std::mt19937& engine) {
  std::vector<std::string> tokens{"a", "b", "\xe9"};
  std::vector<Pair> merges;
  while (merges.size() < 12) {
    const Pair pair(tokens[engine() % tokens.size()], tokens[engine() % tokens.size()]);
    if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
    merges.push_back(pair);
    tokens.push_back(pair.first + pair.second);
  }
  if (engine() % 2 == 0) std::shuffle(merges.begin(), merges.end(), engine);
  return merges;
}

TEST(BytePairs, AreThoseOfThePlainAlgorithm) {
  std::mt19937 engine(21);
  std::size_t merged = 0;
  for (int round = 0; round < 60; ++round) {
    const std::vector<Pair> merges = random_merges(engine);
    const auto tokeniser = Files(merges).load();
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (auto n = engine() % 40; n > 0; --n) text += "aab\xe9 "[engine() % 5];
      std::vector<std::string> expected;
      for (const std::string_view word : split_words(text)) {
        std::vector<std::string> bytes;
        for (const char c : word) bytes.emplace_back(1, c);
        for (const std::string& piece : plain_merge(bytes, merges)) expected.push_back(piece);
      }
      ASSERT_THAT(pieces(*tokeniser, text), ElementsAreArray(expected)) << text;
      merged += text.size() - expected.size();
    }
  }
  EXPECT_GT(merged, 2000U);
}

TEST(BytePairs, DecodeIsTheInverseOfEncode) {
  const auto tokeniser =
      Files{{"e", " "}, {"t", "h"}, {" ", "th"}, {" th", "e"}, {"\xff", "\xfe"}, {"\n", "\n"}}
          .load();
  std::mt19937 engine(8);
  for (int round = 0; round < 1000; ++round) {
    std::string text;
    for (auto n = engine() % 60; n > 0; --n) {
      text += engine() % 2 == 0 ? static_cast<char>(engine()) : " the\n"[engine() % 5];
    }
    ASSERT_EQ(tokeniser->decode(tokeniser->encode(text)), text);
  }
}

TEST(BytePairs, LongWordsTakeNoLongTime) {
  const auto tokeniser = Files{{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}.load();
  EXPECT_EQ(tokeniser->encode(std::string(1U << 17U, 'a')).size(), 1U << 14U);
}

TEST(BytePairs, ErrorsNameFileAndPlace) {
  const Files good{{"a", "b"}};
  EXPECT_THAT(input_error_of([&] { return good.load(258); }),
              AllOf(HasSubstr("vocab.json: 257 tokens"), HasSubstr("expected the 258")));
  const auto error = [&](auto spoil) {
    Files files = Files{{"a", "b"}};
    spoil(files);
    const std::string text = files.error();
    EXPECT_THAT(text, AllOf(HasSubstr(".json"), Not(HasSubstr("\n")))) << text;
    return text;
  };
  const auto line_error = [&](const std::string& line) {
    Files files{{"a", "b"}};
    files.lines += line;
    const std::string text = files.error();
    EXPECT_THAT(text, AllOf(HasSubstr("merges.txt: line 3: "), Not(HasSubstr("\n"))));
    return text;
  };
  EXPECT_THAT(error([](Files& f) { f.vocab["ab"] = -1; }),
              HasSubstr("token 'ab': expected an id from 0 to 256"));
  EXPECT_THAT(error([](Files& f) { f.vocab["ab"] = 257; }), HasSubstr("expected an id"));
  EXPECT_THAT(error([](Files& f) { f.vocab["ab"] = "x"; }), HasSubstr("expected an id"));
  EXPECT_THAT(error([](Files& f) { f.vocab["ab"] = 7; }), HasSubstr("its id 7 comes twice"));
  EXPECT_THAT(error([](Files& f) { f.vocab["a b\n"] = 257; }),
              HasSubstr("token 'a b\\x0a': expected letters of the alphabet"));
  EXPECT_THAT(error([](Files& f) { f.vocab["Ɓ"] = 257; }), HasSubstr("letters of the alphabet"));
  EXPECT_THAT(error([](Files& f) { f.vocab[""] = 257; }), HasSubstr("letters of the alphabet"));
  EXPECT_THAT(line_error("ab"), HasSubstr("expected two tokens"));
  EXPECT_THAT(line_error("a b c\n"), HasSubstr("expected two tokens"));
  EXPECT_THAT(line_error("ab c\n"), HasSubstr("'abc' is no token"));
  EXPECT_THAT(line_error("a \n"), HasSubstr("'' is no token"));
  EXPECT_THAT(line_error("a b"), HasSubstr("a pair that has come before"));
  Files spaced{{"a", "b"}};
  spaced.lines = letters("a") + " b\r\n\n";  // neither a header nor a last merge is required
  EXPECT_THAT(pieces(*spaced.load(), "ab"), ElementsAre("ab"));
}

TEST(BytePairs, MissingBytesAreErrorsOfTheText) {
  Files files{};
  files.vocab.erase("b");
  files.vocab[letter(255)] = 98;
  EXPECT_THAT(input_error_of([&] { return files.load()->encode("a ab"); }),
              HasSubstr("byte 4 is 0x62"));
}

TEST(BytePairs, HostileFilesMakeOneLine) {
  const TempDirectory directory;
  std::mt19937 engine(4);
  const std::string good = Files{{"a", "b"}}.vocab.dump();
  directory.write("merges.txt", "a b\n");
  const auto load = [&](const std::string& bytes) {
    directory.write("vocab.json", bytes);
    return input_error_of([&] { return find_tokeniser(directory.path("x"), 257); });
  };
  ASSERT_EQ(load(good), "no error");
  for (const std::string& bytes :
       {std::string(), std::string("{"), std::string("[1]"), std::string("{\"\xff\":0}"),
        std::string(100000, '['), std::string("{\"a\":") + std::string(100000, '[')}) {
    EXPECT_THAT(load(bytes), AllOf(HasSubstr("vocab.json"), Not(HasSubstr("\n"))));
  }
  for (int round = 0; round < 40; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[engine() % bytes.size()] = static_cast<char>(engine());
    EXPECT_THAT(load(bytes), Not(HasSubstr("\n")));
    directory.write("vocab.json", good);
    std::string merges;
    for (int i = 0; i < 20; ++i) merges += engine() % 3 == 0 ? static_cast<char>(engine()) : 'a';
    directory.write("merges.txt", merges);
    EXPECT_THAT(input_error_of([&] { return find_tokeniser(directory.path("x"), 257); }),
                Not(HasSubstr("\n")));
    directory.write("merges.txt", "a b\n");
  }
}

}  // namespace
}  // namespace systole::model

#include "model/text/text_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace systole::model {
namespace {

constexpr std::array<std::string_view, 7> kEndings = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

enum class Kind { kLetter, kDigit, kSpace, kOther };

Kind kind_of(std::int32_t code_point) {
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Kind::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::kDigit;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return Kind::kSpace;
    default:
      break;
  }
  // The control characters that are white space: tab to carriage return, next line.
  const bool is_space = (code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x85;
  return is_space ? Kind::kSpace : Kind::kOther;
}

struct Character {
  Kind kind = Kind::kOther;
  std::size_t bytes = 1;
};

Character character_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at, 4);  // as long as a character can be
  std::int32_t code_point = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                                      static_cast<utf8proc_ssize_t>(rest.size()), &code_point);
  if (bytes <= 0) return {};
  return {kind_of(code_point), static_cast<std::size_t>(bytes)};
}

/// After the characters of that kind, and where the last of them begins.
struct Run {
  std::size_t end, last;
};

Run run_of(Kind kind, std::string_view text, std::size_t at) {
  Run run{at, at};
  while (run.end < text.size()) {
    const Character character = character_at(text, run.end);
    if (character.kind != kind) break;
    run.last = run.end;
    run.end += character.bytes;
  }
  return run;
}

std::size_t word_end(std::string_view text, std::size_t at) {
  const auto ending = std::find_if(kEndings.begin(), kEndings.end(), [&](std::string_view e) {
    return text.substr(at, e.size()) == e;
  });
  if (ending != kEndings.end()) return at + ending->size();
  const std::size_t after_blank = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  const Kind kind = character_at(text, after_blank).kind;
  if (kind != Kind::kSpace) return run_of(kind, text, after_blank).end;
  const Run space = run_of(Kind::kSpace, text, at);
  return space.end == text.size() || space.last == at ? space.end : space.last;
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = word_end(text, at);
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string_view> split_words_and_digits(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t piece = 0;
  const auto end_piece = [&](std::size_t end) {
    const std::vector<std::string_view> found = split_words(text.substr(piece, end - piece));
    words.insert(words.end(), found.begin(), found.end());
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.kind == Kind::kDigit) {
      end_piece(at);
      words.push_back(text.substr(at, character.bytes));
      piece = at + character.bytes;
    }
    at += character.bytes;
  }
  end_piece(text.size());
  return words;
}

}  // namespace systole::model

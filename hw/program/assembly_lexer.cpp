#include "hw/program/assembly_lexer.h"

#include <charconv>
#include <limits>

#include "base/error.h"
#include "hw/program/assembly_parts.h"

namespace systole::hw {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_mark(char c) { return c == '{' || c == '}' || c == ';'; }
bool ends_word(char c) { return is_blank(c) || is_mark(c) || c == '"' || c == '#'; }

class LineSplitter {
 public:
  explicit LineSplitter(std::string_view line) : line_(line) {}

  std::vector<AssemblyToken> run() {
    std::vector<AssemblyToken> tokens;
    while (skip_blanks()) tokens.push_back(next());
    return tokens;
  }

 private:
  bool skip_blanks() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
    return at_ < line_.size() && line_[at_] != '#';
  }

  AssemblyToken next() {
    AssemblyToken token;
    if (is_mark(line_[at_])) {
      token.value = line_[at_++];
      return token;
    }
    if (line_[at_] == '"') {
      token.quoted = true;
      token.value = string();
      return token;
    }
    std::string word = take_word();
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      token.value = std::move(word);
      return token;
    }
    token.key = word.substr(0, equals);
    token.value = word.substr(equals + 1);
    if (token.key.empty()) throw InputError(shown(word) + " has no name");
    if (token.value.empty() && at_ < line_.size() && line_[at_] == '"') {
      token.quoted = true;
      token.value = string();
    }
    return token;
  }

  std::string take_word() {
    const std::size_t first = at_;
    while (at_ < line_.size() && !ends_word(line_[at_])) {
      const auto byte = static_cast<unsigned char>(line_[at_]);
      if (byte < 0x20 || byte > 0x7e) {
        throw InputError("byte " + std::to_string(byte) + ", expected printable ASCII");
      }
      ++at_;
    }
    return std::string(line_.substr(first, at_ - first));
  }

  std::string string() {
    std::string result;
    for (++at_; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '"') {
        ++at_;
        return result;
      }
      result += c == '\\' ? escape() : c;
    }
    throw InputError("string without closing quote");
  }

  /// Leaves `at_` on the last character of the escape.
  char escape() {
    const std::string_view rest = line_.substr(at_ + 1);
    if (!rest.empty() && (rest[0] == '"' || rest[0] == '\\')) {
      ++at_;
      return rest[0];
    }
    unsigned byte = 0;
    if (rest.size() >= 3 && rest[0] == 'x') {
      const char* const end = rest.data() + 3;
      if (std::from_chars(rest.data() + 1, end, byte, 16).ptr == end) {
        at_ += 3;
        return static_cast<char>(byte);
      }
    }
    throw InputError("escape in a string, expected \\\", \\\\ or \\xNN");
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

/// Magnitude of a number, without sign.
bool parse_digits(std::string_view text, std::uint64_t& value) {
  int base = 10;
  if (text.substr(0, 2) == "0x") {
    text.remove_prefix(2);
    base = 16;
  }
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end && !text.empty();
}

[[noreturn]] void refuse(const std::string& name, std::string_view text,
                         const std::string& expected) {
  throw InputError(name + " is " + shown(text) + ", expected " + expected);
}

}  // namespace

std::vector<AssemblyToken> split_assembly_line(std::string_view line) {
  return LineSplitter(line).run();
}

std::uint64_t parse_unsigned(const std::string& name, std::string_view text,
                             std::uint64_t highest) {
  std::uint64_t value = 0;
  if (!parse_digits(text, value) || value > highest) {
    refuse(name, text, "a number from 0 to " + std::to_string(highest));
  }
  return value;
}

std::int64_t parse_signed(const std::string& name, std::string_view text) {
  constexpr auto kHighest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool negative = !text.empty() && text[0] == '-';
  std::uint64_t magnitude = 0;
  if (!parse_digits(text.substr(negative ? 1 : 0), magnitude) ||
      magnitude > kHighest + (negative ? 1 : 0)) {
    refuse(name, text, "a number of 64 bits");
  }
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

}  // namespace systole::hw

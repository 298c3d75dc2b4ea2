#include "hw/description/toml_text.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_text.h"

namespace systole::hw {
namespace {

constexpr std::size_t kMaxSyntaxBytes = 200;  // of the TOML parser's own message
constexpr std::uint32_t kMaxDots = 16;        // in one line

/// The text made safe for the TOML library (3.3), whose limits hostile input could pass:
/// - it and the destructor of its tree recurse for each level of dotted keys, so that a line of
///   dots would exhaust the stack. No key of ours has more than one dot.
/// - its tables of non-ASCII spaces have undefined behaviour for U+00A1 to U+0499. What we read is
///   ASCII but for comments, so every other character becomes one '?'.
std::string prepared(std::string_view text, const std::string& source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  std::string safe;
  toml::source_position place{1, 1};
  std::uint32_t dots = 0;
  for (const char c : text) {
    const unsigned byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0U) == 0x80U;
    if (c == '.' && ++dots > kMaxDots) {
      throw InputError(toml_place(source, place) + "found more than " + std::to_string(kMaxDots) +
                       " dots in a line, expected keys of the form section.key");
    }
    if (!continues) {
      safe += byte < 0x80U ? c : '?';
      ++place.column;
    }
    if (c == '\n') {
      place = {place.line + 1, 1};
      dots = 0;
    }
  }
  return safe;
}

}  // namespace

std::string read_toml(const std::string& path, std::size_t max_bytes, const std::string& expected) {
  const std::string end = ", expected " + expected;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw InputError(printable(path) + ": found no such file" + end);
  }
  // Also keeps pipes and devices out, on which reading could wait or never end.
  if (!std::filesystem::is_regular_file(status)) {
    throw InputError(printable(path) + ": found a directory or a device" + end);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(printable(path) + ": cannot be opened" + end);
  // One more shows that the file is too long.
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw InputError(printable(path) + ": cannot be read" + end);
  std::string text(std::min<std::uintmax_t>(size, max_bytes) + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw InputError(printable(path) + ": cannot be read" + end);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

toml::table parse_toml(std::string_view text, const std::string& source, std::size_t max_bytes,
                       const std::string& expected) {
  if (text.size() > max_bytes) {
    throw InputError(source + ": found more than " + std::to_string(max_bytes) +
                     " bytes, expected " + expected);
  }
  const std::string safe = prepared(text, source);
  try {
    return toml::parse(safe);
  } catch (const toml::parse_error& error) {
    throw InputError(toml_place(source, error.source().begin) +
                     "not valid TOML: " + printable(error.description(), kMaxSyntaxBytes));
  }
}

std::string toml_place(const std::string& source, toml::source_position place) {
  return source + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
}

std::string found_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return quoted_text(node.ref<std::string>());
    case toml::node_type::integer:
      return std::to_string(node.ref<std::int64_t>());
    case toml::node_type::floating_point:
      return real_text(node.ref<double>());
    case toml::node_type::boolean:
      return node.ref<bool>() ? "true" : "false";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    default:
      return "a date or time";
  }
}

}  // namespace systole::hw

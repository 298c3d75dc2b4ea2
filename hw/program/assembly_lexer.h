#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace systole::hw {

/// A word, a mark (`{`, `}`, `;`), a `key=value` pair or a quoted string of one assembly line. A
/// bare string has no key; a word or mark has neither key nor quotes and stands in `value`.
struct AssemblyToken {
  std::string key;
  std::string value;
  bool quoted = false;
  [[nodiscard]] bool is_word() const { return key.empty() && !quoted; }
};

/// Splits one line, which holds no line feed; the comment is dropped. Throws InputError without a
/// place for an unclosed string, a bad escape or a control character.
[[nodiscard]] std::vector<AssemblyToken> split_assembly_line(std::string_view line);

/// Decimal or 0x hexadecimal. Throws InputError without a place if it is no number or not within
/// lowest to highest; `name` says of what.
[[nodiscard]] std::uint64_t parse_unsigned(const std::string& name, std::string_view text,
                                           std::uint64_t highest);
[[nodiscard]] std::int64_t parse_signed(const std::string& name, std::string_view text);

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hw/number/dtype.h"
#include "hw/program/assembly_lexer.h"

/// What the parsers of all kinds of assembly lines need. Errors are InputErrors without a place.
namespace systole::hw {

/// In quotes, fit for one line of a message.
[[nodiscard]] std::string shown(std::string_view text);
[[nodiscard]] std::string shown(const AssemblyToken& token);

/// Index of a word in a list; `name` says of what.
template <std::size_t kSize>
std::size_t word_index(const std::array<std::string_view, kSize>& words, const std::string& name,
                       std::string_view text) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    std::string expected;
    for (const std::string_view word : words) {
      expected += (expected.empty() ? "" : ", ") + std::string(word);
    }
    throw InputError(name + " is " + shown(text) + ", expected one of " + expected);
  }
  return static_cast<std::size_t>(found - words.begin());
}

[[nodiscard]] DType type_of(std::string_view text);

/// Notes the names given in one line or stage, each of which may come once.
class Names {
 public:
  void add(const std::string& name) {
    if (!names_.insert(name).second) throw InputError(name + " is given twice");
  }

 private:
  std::set<std::string> names_;
};

[[noreturn]] void unexpected(const AssemblyToken& token, std::string_view where);

/// The items between the commas; at least one, perhaps empty.
[[nodiscard]] std::vector<std::string_view> split_list(std::string_view text);

}  // namespace systole::hw

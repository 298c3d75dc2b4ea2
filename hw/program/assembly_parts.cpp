#include "hw/program/assembly_parts.h"

#include "base/printable.h"
#include "hw/program/assembly_words.h"

namespace systole::hw {
namespace {

constexpr std::size_t kShown = 60;  ///< bytes of a bad token in a message

}  // namespace

std::string shown(std::string_view text) { return "'" + printable(text, kShown) + "'"; }

std::string shown(const AssemblyToken& token) {
  return shown(token.key.empty() ? token.value : token.key + "=" + token.value);
}

DType type_of(std::string_view text) {
  return static_cast<DType>(word_index(kTypeWords, "type", text));
}

void unexpected(const AssemblyToken& token, std::string_view where) {
  throw InputError(shown(token) + " is no part of " + std::string(where));
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find(','), text.size());
    items.push_back(text.substr(0, end));
    more = end != text.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

}  // namespace systole::hw

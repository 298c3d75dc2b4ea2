#include "model/metadata/metadata.h"

#include <charconv>

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {

std::string metadata_text(const Metadata& metadata, const std::string& key) {
  const auto entry = metadata.values.find(key);
  if (entry == metadata.values.end()) {
    throw hw::InputError(metadata.place + " '" + key + "': missing");
  }
  return entry->second;
}

std::uint32_t metadata_number(const Metadata& metadata, const std::string& key,
                              std::uint32_t lowest, std::uint32_t highest) {
  const std::string text = metadata_text(metadata, key);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || value < lowest || value > highest) {
    throw hw::InputError(metadata.place + " '" + key + "': " + hw::printable(text) + ", expected " +
                         std::to_string(lowest) + " to " + std::to_string(highest));
  }
  return value;
}

}  // namespace systole::model

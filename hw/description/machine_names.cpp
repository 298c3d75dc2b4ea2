#include "hw/description/machine_names.h"

#include "hw/description/machine_text.h"

namespace systole::hw {

std::optional<KeyValue> convert(const MachineKey& key, const toml::node& node) {
  const auto* text = node.as_string();
  const auto* integer = node.as_integer();
  const auto* number = node.as_floating_point();
  switch (key.kind) {
    case MachineKey::Kind::kInteger:
    case MachineKey::Kind::kPowerOfTwo:
      if (integer != nullptr) return integer->get();
      break;
    case MachineKey::Kind::kNumber:
      if (number != nullptr) return number->get();
      if (integer != nullptr) return static_cast<double>(integer->get());
      break;
    case MachineKey::Kind::kName:
      if (text != nullptr) return text->get();
      break;
    case MachineKey::Kind::kWord:
      if (text != nullptr) return word_value(key, text->get());
      break;
  }
  return std::nullopt;
}

std::vector<std::string_view> sections() {
  std::vector<std::string_view> names;
  for (const MachineKey& key : machine_keys()) {
    const std::string_view section = section_of(key.path);
    if (!section.empty() && (names.empty() || names.back() != section)) names.push_back(section);
  }
  return names;
}

std::vector<std::string_view> keys_in(std::string_view section) {
  std::vector<std::string_view> names;
  for (const MachineKey& key : machine_keys()) {
    if (section_of(key.path) == section) names.push_back(key_of(key.path));
  }
  if (!section.empty()) return names;
  names.push_back(kBaseKey);
  for (const std::string_view name : sections()) names.push_back(name);
  return names;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace systole::hw

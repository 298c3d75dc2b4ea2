#include "hw/description/machine_file.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_presets.h"
#include "hw/description/machine_reader.h"
#include "hw/description/machine_text.h"
#include "hw/description/toml_text.h"

namespace systole::hw {
namespace {

using Kind = MachineKey::Kind;

constexpr std::string_view kMachineSuffix = ".toml";

/// Presets that are being read, innermost last: a preset may have a base itself.
using BaseChain = std::vector<std::string>;

std::string read_text(const std::string& path) {
  return read_toml(path, kMaxMachineFile, "a machine file");
}

Machine parse(std::string_view text, const std::string& source_name, const BaseChain& chain);

Machine load_preset(const std::string& name, BaseChain chain) {
  if (std::find(chain.begin(), chain.end(), name) != chain.end()) {
    throw InputError("found " + quoted_text(name) + ", which is its own base");
  }
  const std::string path = machine_preset_path(name);
  if (path.empty()) {
    throw InputError("found " + quoted_text(name) + ", expected " + list_of_machine_presets());
  }
  chain.push_back(name);
  return parse(read_text(path), path, chain);
}

CoreSystem parse_all(std::string_view text, const std::string& source_name,
                     const BaseChain& chain) {
  const std::string source = printable(source_name);
  const toml::table root = parse_toml(text, source, kMaxMachineFile, "a machine description");
  return read_machine(root, source,
                      [&](const std::string& base) { return load_preset(base, chain); });
}

Machine parse(std::string_view text, const std::string& source_name, const BaseChain& chain) {
  CoreSystem system = parse_all(text, source_name, chain);
  if (!system.cores.empty()) {
    throw InputError(printable(source_name) +
                     ": core: found a machine of several cores ([[core]]), "
                     "expected one core, described by the sections of the file: systole run and "
                     "systole machine take several");
  }
  return std::move(system.machine);
}

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos ||
         (text.size() >= kMachineSuffix.size() &&
          text.compare(text.size() - kMachineSuffix.size(), kMachineSuffix.size(),
                       kMachineSuffix) == 0);
}

template <typename Number>
std::optional<KeyValue> from_text(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<KeyValue> convert(const MachineKey& key, std::string_view text) {
  switch (key.kind) {
    case Kind::kInteger:
    case Kind::kPowerOfTwo:
      return from_text<std::int64_t>(text);
    case Kind::kNumber:
      return from_text<double>(text);
    case Kind::kName:
      return std::string(text);
    case Kind::kWord:
      break;
  }
  return word_value(key, text);
}

}  // namespace

Machine parse_machine(std::string_view text, const std::string& source_name) {
  return parse(text, source_name, {});
}

Machine load_machine(const std::string& path) { return parse(read_text(path), path, {}); }

Machine find_machine(const std::string& name_or_path) {
  if (is_path(name_or_path)) return load_machine(name_or_path);
  if (machine_preset_path(name_or_path).empty()) {
    throw InputError("machine: found " + quoted_text(name_or_path) + ", expected " +
                     list_of_machine_presets() + ", or a path to a .toml file");
  }
  return load_preset(name_or_path, {});
}

CoreSystem find_system(const std::string& name_or_path) {
  if (!is_path(name_or_path)) return {find_machine(name_or_path), {}, 0};
  return parse_all(read_text(name_or_path), name_or_path, {});
}

void set_key(Machine& machine, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw InputError("--set " + quoted_text(assignment) + ": expected section.key=value");
  }
  const std::string_view path = assignment.substr(0, equals);
  const std::string_view text = assignment.substr(equals + 1);
  const std::string where = "--set " + printable(path, kShownBytes) + ": ";
  const MachineKey* key = find_machine_key(path);
  if (key == nullptr) {
    const std::string_view meant = nearest_machine_key(path);
    throw InputError(where + "unknown key" +
                     (meant.empty() ? ", expected section.key of a machine description"
                                    : ", did you mean " + std::string(meant) + "?"));
  }
  const auto value = convert(*key, text);
  if (!value || !accepts(*key, *value)) {
    throw InputError(where + "found " + quoted_text(text) + ", expected " + expected(*key));
  }
  key->set(machine, *value);
}

}  // namespace systole::hw

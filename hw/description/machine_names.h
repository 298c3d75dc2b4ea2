#pragma once

#include <toml++/toml.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/description/machine_keys.h"

/// Keys and values of a machine file, as its reader looks for them.
namespace systole::hw {

/// The key of a preset to begin with.
inline constexpr std::string_view kBaseKey = "base";

/// The value as the key's kind holds it; none if it has another type.
[[nodiscard]] std::optional<KeyValue> convert(const MachineKey& key, const toml::node& node);

/// Of all keys, in their order.
[[nodiscard]] std::vector<std::string_view> sections();

/// The keys of a section, or what may be outside the sections ("").
[[nodiscard]] std::vector<std::string_view> keys_in(std::string_view section);

/// With ", " between them.
[[nodiscard]] std::string joined(const std::vector<std::string_view>& names);

}  // namespace systole::hw

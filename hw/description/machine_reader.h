#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>

#include "hw/description/core_system.h"

namespace systole::hw {

/// Returns the machine that a preset describes, or throws InputError.
using BaseLoader = std::function<Machine(const std::string& preset)>;

/// The machine of a parsed file, and its `[[core]]` tables. Throws InputError with every problem,
/// in the order of the file. `source` is fit for one line.
[[nodiscard]] CoreSystem read_machine(const toml::table& root, const std::string& source,
                                      const BaseLoader& load_base);

}  // namespace systole::hw

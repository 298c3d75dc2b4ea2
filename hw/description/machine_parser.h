#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "hw/machine/machine.h"

namespace systole::hw {

/// Returns the machine that a preset describes, or throws InputError.
using BaseLoader = std::function<Machine(const std::string& preset)>;

/// Reads a machine description in TOML; every error begins with `source_name`. See
/// hw/description/machine_file.h for the language and the errors. `load_base` answers `base =
/// "NAME"`.
[[nodiscard]] Machine parse_machine(std::string_view text, const std::string& source_name,
                                    const BaseLoader& load_base);

}  // namespace systole::hw

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "hw/description/core_system.h"
#include "hw/machine/machine.h"

/// Machine descriptions in TOML. A file sets any of the keys in hw/description/machine_keys.h; what
/// it does not set keeps the default, or the value of the preset that `base = "NAME"` starts from.
///
/// A machine that these functions return is valid (hw/description/machine_rules.h). Bad input
/// throws InputError with every error found, one on each line and in the order of the file:
/// `file:line:column: key: found X, expected Y (unit, range)`. Only an error of TOML itself hides
/// those after it.
namespace systole::hw {

/// Largest machine file, in bytes.
inline constexpr std::size_t kMaxMachineFile = 65536;

[[nodiscard]] Machine parse_machine(std::string_view text, const std::string& source_name);

/// Reads a file. Whatever is not a readable regular file of at most kMaxMachineFile bytes is an
/// InputError as well.
[[nodiscard]] Machine load_machine(const std::string& path);

/// A preset by its name, or a file: what contains a '/' or ends in ".toml" is a path.
[[nodiscard]] Machine find_machine(const std::string& name_or_path);

/// The same for what may have several cores: `[[core]]` tables in a file. The functions above
/// refuse such a file.
[[nodiscard]] CoreSystem find_system(const std::string& name_or_path);

/// Applies one `section.key=value` of the command line; words and names need no quotes. Checks the
/// key and its range only, since several settings may be consistent only together: call validate()
/// after the last. Throws InputError, one line.
void set_key(Machine& machine, std::string_view assignment);

}  // namespace systole::hw

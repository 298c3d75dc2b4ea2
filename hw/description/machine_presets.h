#pragma once

#include <string>
#include <vector>

/// The machine descriptions that come with the program: `machines/NAME.toml` in data_directory()
/// (base/installation.h).
namespace systole::hw {

[[nodiscard]] std::string machine_presets_directory();

/// Names of the presets, sorted; empty if the directory cannot be read.
[[nodiscard]] std::vector<std::string> machine_presets();

/// The presets as an error message lists them: `gemmini, tiny or transformer`; says where it looked
/// if there are none.
[[nodiscard]] std::string list_of_machine_presets();

/// Path of the preset's file, empty if there is no preset of that name.
[[nodiscard]] std::string machine_preset_path(const std::string& name);

}  // namespace systole::hw

#pragma once

#include <string>

namespace systole::hw {

/// The folder of what comes with the program, laid out as the source tree: traces, testbench/page,
/// third_party, python. The first of these that exists: share/systole beside the folder of the
/// running program, as `cmake --install` and packages leave it, wherever that was moved to; the
/// source tree; share/systole below the prefix that was configured.
[[nodiscard]] const std::string& installation();

/// The folder with machines, models, data and published figures: the environment variable
/// SYSTOLE_DATA, else installation() + "/traces".
[[nodiscard]] std::string data_directory();

}  // namespace systole::hw

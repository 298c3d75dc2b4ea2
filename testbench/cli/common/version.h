#pragma once

#include <string>

namespace systole::testbench {

/// The same as in CMakeLists.txt; a test compares them.
inline constexpr const char* kVersion = "0.1.0";

/// Abbreviated, with "-dirty" where files differ from it; empty: built without git.
extern const char* const kCommit;

/// Both, for what only this program can load.
[[nodiscard]] inline std::string program_version() { return std::string(kVersion) + " " + kCommit; }

}  // namespace systole::testbench

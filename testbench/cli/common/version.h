#pragma once

namespace systole::testbench {

/// The same as in CMakeLists.txt; a test compares them.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace systole::testbench

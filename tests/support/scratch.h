#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace systole::test {

/// Path for a temporary file that belongs to this process alone, so that tests may run in parallel.
inline std::string scratch(const std::string& name) {
  return ::testing::TempDir() + std::to_string(::getpid()) + "_" + name;
}

}  // namespace systole::test

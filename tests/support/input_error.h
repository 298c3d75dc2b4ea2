#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace systole {

/// The text of the InputError that `action` throws; "no error" if it throws none.
template <typename Action>
std::string input_error_of(Action action) {
  try {
    action();
  } catch (const hw::InputError& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

}  // namespace systole

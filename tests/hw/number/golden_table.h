#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "support/paths.h"

namespace systole::hw {

/// The cases of one reference table below tests/golden.
inline nlohmann::json golden_cases(const std::string& name) {
  std::ifstream file(source_path("tests/golden/" + name));
  if (!file) throw std::runtime_error("missing test data " + name);
  return nlohmann::json::parse(file).at("cases");
}

}  // namespace systole::hw

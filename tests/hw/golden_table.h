#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace systole::hw {

/// The cases of one reference table below tests/golden.
inline nlohmann::json golden_cases(const std::string& name) {
  std::ifstream file(std::string(SYSTOLE_TEST_DATA_DIR) + "/" + name);
  if (!file) throw std::runtime_error("missing test data " + name);
  return nlohmann::json::parse(file).at("cases");
}

}  // namespace systole::hw

#pragma once

#include <string>

namespace systole::model {

/// Golden vectors of I-BERT's functions.
inline std::string golden_path(const std::string& name) {
  return std::string(SYSTOLE_TEST_DATA_DIR) + "/ibert/" + name + ".json";
}

}  // namespace systole::model

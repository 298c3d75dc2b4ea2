#pragma once

#include <string>

#include "support/paths.h"

namespace systole::model {

/// Golden vectors of I-BERT's functions.
inline std::string golden_path(const std::string& name) {
  return source_path("tests/golden/ibert/" + name + ".json");
}

}  // namespace systole::model

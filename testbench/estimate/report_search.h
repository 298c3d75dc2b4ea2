#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "testbench/run/mapping_search.h"

namespace systole::testbench {

/// At most kTextWidth columns.
[[nodiscard]] std::string search_text(const MappingSearch& search);
[[nodiscard]] nlohmann::ordered_json search_json(const MappingSearch& search);

}  // namespace systole::testbench

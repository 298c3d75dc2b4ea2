#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "hw/machine/machine.h"
#include "hw/silicon/area.h"

/// What a machine's events and blocks cost, before anything runs.
namespace systole::testbench {

/// Square millimetres by block.
[[nodiscard]] nlohmann::ordered_json to_json(const hw::AreaReport& area);

/// One line: the area, and the blocks by size. Empty for a machine without a model of its area.
[[nodiscard]] std::string area_text(const hw::Machine& machine);

/// Every event's energy and every block's area, as two tables.
[[nodiscard]] std::string costs_text(const hw::Machine& machine);
/// The same: `energy` with the names of the machine's keys, `area_mm2` and `area`.
[[nodiscard]] nlohmann::ordered_json costs_json(const hw::Machine& machine);

}  // namespace systole::testbench

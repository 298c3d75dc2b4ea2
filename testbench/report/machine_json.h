#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/roofline.h"
#include "hw/description/machine_keys.h"
#include "hw/machine/machine.h"

/// Machines in documents.
namespace systole::testbench {

/// The keys that say something about the machine: not those of a tile core for a ring of others.
[[nodiscard]] std::vector<const hw::MachineKey*> keys_that_matter(const hw::Machine& machine);

/// A key's value; a word as text.
[[nodiscard]] nlohmann::ordered_json machine_value(const hw::MachineKey& key,
                                                   const hw::Machine& machine);

/// "16 x 16 weight-stationary array, 256 KiB scratchpad, ...".
[[nodiscard]] std::string machine_summary(const hw::Machine& machine);

/// The document of `systole machine NAME --json`: objects by section.
[[nodiscard]] nlohmann::ordered_json machine_json(const hw::Machine& machine);

/// What the machine can do at most, with the names of docs/analyse.md.
[[nodiscard]] nlohmann::ordered_json roofline_json(const analysis::Roofline& roofline);

}  // namespace systole::testbench

#pragma once

#include <string>
#include <vector>

#include "hw/description/core_system.h"
#include "hw/energy.h"
#include "hw/machine/machine.h"

namespace systole::testbench {

/// The events of a run as Accelergy's `action_counts` (version 0.3), in YAML: one component a
/// block, `system.NAME`, with one action. Words are rounded up. docs/energy.md says which class of
/// component each is.
[[nodiscard]] std::string action_counts_yaml(const hw::Machine& machine,
                                             const hw::EnergyEvents& events);

/// The same of several cores: the blocks of each are `system.CORE.NAME`, what they share
/// `system.NAME`. `cores`: what happened in each; `all`: in the system.
[[nodiscard]] std::string action_counts_yaml(const hw::CoreSystem& system,
                                             const std::vector<hw::EnergyEvents>& cores,
                                             const hw::EnergyEvents& all);

}  // namespace systole::testbench

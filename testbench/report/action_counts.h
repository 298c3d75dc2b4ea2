#pragma once

#include <string>

#include "hw/energy.h"
#include "hw/machine/machine.h"

namespace systole::testbench {

/// The events of a run as Accelergy's `action_counts` (version 0.3), in YAML: one component a
/// block, `system.NAME`, with one action. Words are rounded up. docs/energy.md says which class of
/// component each is.
[[nodiscard]] std::string action_counts_yaml(const hw::Machine& machine,
                                             const hw::EnergyEvents& events);

}  // namespace systole::testbench

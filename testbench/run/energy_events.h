#pragma once

#include "hw/energy.h"
#include "tlm/system.h"

namespace systole::testbench {

/// What a finished simulation did, as far as it costs energy.
[[nodiscard]] hw::EnergyEvents energy_events(tlm_model::System& system);

}  // namespace systole::testbench

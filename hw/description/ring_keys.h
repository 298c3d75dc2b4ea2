#pragma once

#include <vector>

#include "hw/description/machine_keys.h"

namespace systole::hw::dfx {

/// Adds the keys of the sections of hw/machine/parameters.h.
void append_keys(std::vector<MachineKey>& keys);

}  // namespace systole::hw::dfx

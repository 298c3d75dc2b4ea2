#pragma once

#include <string>
#include <vector>

#include "hw/machine.h"

/// The blocks that can run as Verilated RTL: those with a key in section `backend` of a machine.
namespace systole::testbench {

[[nodiscard]] std::vector<std::string> rtl_blocks();

/// Runs `block` as RTL, or every block for "all". Throws InputError for a name without a twin.
void swap_for_rtl(hw::Machine& machine, const std::string& block);

}  // namespace systole::testbench

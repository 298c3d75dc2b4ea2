#pragma once

#include <string>
#include <vector>

#include "hw/machine/machine.h"

/// The blocks that can run as Verilated RTL: those with a key in section `backend` of a machine.
namespace systole::testbench {

[[nodiscard]] std::vector<std::string> rtl_blocks();

/// Those of the attention engines.
[[nodiscard]] std::vector<std::string> attention_blocks();

/// Those of cores for text generation.
[[nodiscard]] std::vector<std::string> generation_blocks();

/// Those that a machine has.
[[nodiscard]] std::vector<std::string> rtl_blocks(const hw::Machine& machine);

/// Whether that block of the machine is its RTL.
[[nodiscard]] bool runs_as_rtl(const hw::Machine& machine, const std::string& block);

/// Runs `block` as RTL. "all": every block that the machine has, except that a machine with
/// attention engines keeps the model of a block of which no RTL of its size is built. Throws
/// InputError for a name without a twin.
void swap_for_rtl(hw::Machine& machine, const std::string& block);

}  // namespace systole::testbench

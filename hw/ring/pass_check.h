#pragma once

#include <string>

#include "hw/ring/pass_image.h"

namespace systole::hw::dfx {

/// What is wrong with an instruction, or an exchange, of a core of the machine: registers, scalars
/// or memory that do not exist. Empty: nothing.
[[nodiscard]] std::string problem_of(const Instruction& instruction, const Pass& pass,
                                     const Machine& machine, const PassLimits& limits);
[[nodiscard]] std::string problem_of(const Exchange& exchange, const PassLimits& limits);

}  // namespace systole::hw::dfx

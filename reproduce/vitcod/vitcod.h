#pragma once

#include "reproduce/reproduction.h"
#include "reproduce/vitcod/vitcod_subject.h"

namespace systole::testbench {

/// ViTCoD (HPCA 2023): its sparse attention engines, simulated, beside the figures of the paper and
/// of its public cycle counter. Throws InputError as load_vitcod_subject() and run_vitcod().
[[nodiscard]] Reproduction reproduce_vitcod(const VitcodOptions& options,
                                            const hw::Machine& machine);

}  // namespace systole::testbench

#pragma once

#include <string>
#include <vector>

#include "reproduce/reproduction.h"

namespace systole::testbench {

/// What `systole reproduce dfx` can do apart: "bounds" (from shapes alone), "latency" (GPT-2 345M),
/// "sizes" (the others), "shares" (operations and time), "ideal" (without cost of control),
/// "checks" (syncs and bytes) and "whatif" (sweeps, for pictures).
[[nodiscard]] const std::vector<std::string>& dfx_parts();

/// DFX (MICRO 2022): text generation with GPT-2 on a ring of cores, beside what was measured.
/// `parts` of dfx_parts(); none: all.
[[nodiscard]] Reproduction reproduce_dfx(const std::vector<std::string>& parts);

}  // namespace systole::testbench

#pragma once

#include <string>
#include <vector>

#include "reproduce/reproduction.h"

namespace systole::testbench {

/// What `systole reproduce fusion` can do apart: "chains" (elementwise operators), "layer" (a GPT-2
/// layer) and "models" (the embedded ones on the preset machines).
[[nodiscard]] const std::vector<std::string>& fusion_parts();

/// Operator fusion: nothing fused, behind anchors alone, and everywhere, beside what follows from
/// the operators. `parts` of fusion_parts(); none: all.
[[nodiscard]] Reproduction reproduce_fusion(const std::vector<std::string>& parts);

}  // namespace systole::testbench

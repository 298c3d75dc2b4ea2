#pragma once

#include <vector>

#include "testbench/plot.h"

namespace systole::testbench {

/// "survey_lengths.png" (FLOPs, bytes and their ratio over the length) and "survey_latency.png"
/// (latency by the analytical model): ours as lines, labels of the survey's charts as points.
[[nodiscard]] std::vector<Plot> survey_plots();

}  // namespace systole::testbench

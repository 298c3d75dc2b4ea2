#pragma once

#include <vector>

#include "testbench/plot.h"
#include "testbench/reproduce/dfx_runs.h"

namespace systole::testbench {

/// "dfx_shares.png": a pass of each run, in ms by phase.
[[nodiscard]] Plot dfx_shares_plot(const std::vector<DfxRun>& runs);

}  // namespace systole::testbench

#pragma once

#include <vector>

#include "reproduce/dfx/dfx_runs.h"
#include "testbench/report/plot.h"

namespace systole::testbench {

/// "dfx_shares.png": a pass of each run, in ms by phase.
[[nodiscard]] Plot dfx_shares_plot(const std::vector<DfxRun>& runs);

}  // namespace systole::testbench

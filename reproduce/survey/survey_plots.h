#pragma once

#include <vector>

#include "reproduce/survey/survey_runs.h"
#include "testbench/report/plot.h"

namespace systole::testbench {

/// "survey_lengths.png" (FLOPs, bytes and their ratio over the length) and "survey_latency.png"
/// (latency by the analytical model): ours as lines, labels of the survey's charts as points.
[[nodiscard]] std::vector<Plot> analysis_plots();

/// "survey_splits.png": Fig. 13, ours beside published.
[[nodiscard]] Plot split_plot(const std::vector<SplitRun>& runs);
/// "survey_shares.png": Fig. 14, ours beside published.
[[nodiscard]] Plot shares_plot(const EncoderRuns& runs);

}  // namespace systole::testbench

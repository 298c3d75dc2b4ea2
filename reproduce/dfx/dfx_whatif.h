#pragma once

#include <string>
#include <vector>

#include "reproduce/dfx/dfx_runs.h"
#include "reproduce/reproduction.h"
#include "testbench/report/plot.h"

/// What if DFX had more cores, other memory, another ring?
namespace systole::testbench {

/// A line of a chart: ms of a pass over what changes.
struct DfxCurve {
  std::string name;
  std::vector<double> x;
  std::vector<DfxRun> runs;  ///< by x
};

struct DfxWhatIf {
  std::vector<DfxCurve> cores, memory, hops;
};

/// Simulates all of it.
[[nodiscard]] DfxWhatIf run_dfx_what_if();

/// Ends of the curves, none of them published.
[[nodiscard]] ReproductionSection dfx_what_if_section(const DfxWhatIf& runs);

/// "dfx_cores.png" (ms of a pass over cores, with what was measured), "dfx_memory.png" (over the
/// HBM's rate), "dfx_hops.png" (over the latency of a hop).
[[nodiscard]] std::vector<Plot> dfx_what_if_plots(const DfxWhatIf& runs);

}  // namespace systole::testbench

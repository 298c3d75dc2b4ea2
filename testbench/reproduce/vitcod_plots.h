#pragma once

#include <vector>

#include "testbench/plot.h"
#include "testbench/reproduce/vitcod_runs.h"
#include "testbench/reproduce/vitcod_subject.h"

namespace systole::testbench {

/// "vitcod_mask.png" (each head before and after reordering), "vitcod_cycles.png" (phases and
/// stalls by layer), "vitcod_break_even.png" (decoder MACs over
/// bandwidth), "vitcod_sparsity.png" (speed-up over sparsity).
[[nodiscard]] std::vector<Plot> vitcod_plots(const VitcodSubject& subject, const VitcodRuns& runs);

}  // namespace systole::testbench

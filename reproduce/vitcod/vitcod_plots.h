#pragma once

#include <vector>

#include "reproduce/vitcod/vitcod_runs.h"
#include "reproduce/vitcod/vitcod_subject.h"
#include "testbench/report/plot.h"

namespace systole::testbench {

/// "vitcod_mask.png" (each head before and after reordering), "vitcod_cycles.png" (phases and
/// stalls by layer), "vitcod_break_even.png" (decoder MACs over
/// bandwidth), "vitcod_sparsity.png" (speed-up over sparsity).
[[nodiscard]] std::vector<Plot> vitcod_plots(const VitcodSubject& subject, const VitcodRuns& runs);

}  // namespace systole::testbench

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/bound/lower_bound.h"
#include "testbench/explain/explanation.h"
#include "testbench/explain/what_if.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {

/// All that `systole explain` says of a run.
struct ExplainReport {
  Measurement measurement;
  analysis::LowerBound bound;  ///< of the network on the machine
  Explanation explanation;
  std::vector<WhatIf> changes;
};

/// Without changes of the machine. `program` and `bound` are of the first inference.
[[nodiscard]] ExplainReport explain_run(Measurement measurement, const hw::Program& program,
                                        analysis::LowerBound bound);

/// At most kTextWidth columns.
[[nodiscard]] std::string explain_text(const ExplainReport& report);
/// Names are those of docs/explain.md.
[[nodiscard]] nlohmann::ordered_json explain_json(const ExplainReport& report);

}  // namespace systole::testbench

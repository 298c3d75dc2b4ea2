#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/mapped_cost.h"
#include "base/accounting.h"
#include "testbench/run/operator_timing.h"

namespace systole::testbench {

/// What the operators of a mapped network are expected to take, and what they took.
struct EstimateReport {
  std::string machine;
  std::vector<analysis::OperatorEstimate> estimates;
  std::vector<OperatorTiming> timings;  ///< for each estimate; empty: not simulated
  std::uint64_t cycles = 0;             ///< simulated, from start to interrupt
  std::vector<hw::BlockReport> blocks;  ///< of the simulation
};

/// At most kTextWidth columns; operators that differ in layer and head alone are one line.
[[nodiscard]] std::string estimate_text(const EstimateReport& report);
/// Names are those of docs/analyse.md.
[[nodiscard]] nlohmann::ordered_json estimate_json(const EstimateReport& report);

}  // namespace systole::testbench

#pragma once

#include <vector>

#include "analysis/operator_cost.h"
#include "analysis/transformer_cost.h"

namespace systole::analysis {

/// The survey's analytical performance model (arXiv 2302.14017, Sec. 3.3 and App. A.5): computation
/// and memory of an operator overlap perfectly, and nothing overlaps between operators.
struct SurveyModel {
  double array_width = 16;  ///< W: the array does W^2 MACs a cycle
  double dram_bytes_per_cycle = 64;
  double local_bytes_per_cycle = 16;  ///< between L2 and the scratchpad
  TileLimits limits;

  /// max(MACs / W^2, bytes x (1 / 16 + 1 / 64)): a byte goes from DRAM to the L2 and then on.
  [[nodiscard]] double cycles(const OperatorCost& op) const;
  [[nodiscard]] double cycles(const std::vector<OperatorCost>& operators) const;
};

}  // namespace systole::analysis

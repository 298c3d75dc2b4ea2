#include "analysis/survey_performance.h"

#include <algorithm>
#include <numeric>

namespace systole::analysis {

double SurveyModel::cycles(const OperatorCost& op) const {
  const double compute = op.macs / (array_width * array_width);
  const double memory = op.bytes * (1 / dram_bytes_per_cycle + 1 / local_bytes_per_cycle);
  return std::max(compute, memory);
}

double SurveyModel::cycles(const std::vector<OperatorCost>& operators) const {
  return std::accumulate(operators.begin(), operators.end(), 0.0,
                         [&](double sum, const OperatorCost& op) { return sum + cycles(op); });
}

}  // namespace systole::analysis

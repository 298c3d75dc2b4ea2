#include "analysis/operator_cost.h"

namespace systole::analysis {
namespace {

constexpr std::array<std::string_view, kOperatorClasses> kClassNames = {"projections", "attention",
                                                                        "feed-forward", "other"};

void add(OperatorCost& sum, const OperatorCost& part) {
  sum.macs += part.macs;
  sum.flops += part.flops;
  sum.bytes += part.bytes;
  sum.elements += part.elements;
}

}  // namespace

std::string_view name_of(OperatorClass kind) {
  return kClassNames.at(static_cast<std::size_t>(kind));
}

CostSummary summarise(const std::vector<OperatorCost>& operators) {
  CostSummary summary;
  for (std::size_t i = 0; i < kOperatorClasses; ++i) {
    summary.classes[i].kind = static_cast<OperatorClass>(i);
    summary.classes[i].name = kClassNames[i];
  }
  summary.total.name = "total";
  for (const OperatorCost& op : operators) {
    add(summary.classes[static_cast<std::size_t>(op.kind)], op);
    add(summary.total, op);
  }
  return summary;
}

}  // namespace systole::analysis

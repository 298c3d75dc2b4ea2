#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/dataflow.h"

namespace systole::testbench {

/// Dataflows of one product on one machine.
struct DataflowReport {
  std::string machine;
  analysis::ProductShape shape;
  std::vector<analysis::Stationary> dataflows;
  std::vector<analysis::DataflowCost> costs;  ///< for each
};
[[nodiscard]] DataflowReport compare_dataflows(const hw::Machine& machine,
                                               const analysis::ProductShape& shape,
                                               std::vector<analysis::Stationary> dataflows);

/// At most kTextWidth columns.
[[nodiscard]] std::string dataflow_text(const DataflowReport& report);
/// Names are those of docs/analyse.md.
[[nodiscard]] nlohmann::ordered_json dataflow_json(const DataflowReport& report);

}  // namespace systole::testbench

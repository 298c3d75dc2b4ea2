#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/mapped_cost.h"
#include "testbench/run/operator_timing.h"

namespace systole::testbench {

/// What operators of one general name, or all, are expected to take, and what they took.
struct OperatorSum {
  std::string name;
  std::uint64_t count = 0, macs = 0, read_bytes = 0, written_bytes = 0, simulated = 0;
  std::uint64_t expected = 0, expected_loads = 0, loads = 0;
  analysis::Bound bound;
  double slowest = 0;  ///< of each operator the slowest unit: not the slowest of the sums
  std::array<double, kCauses> causes{};
  hw::EnergyEvents events;  ///< of its commands, simulated

  /// `timing`: null if there is none.
  void add(const analysis::OperatorEstimate& estimate, const OperatorTiming* timing);
};

/// In the order of their first operator; the last one is the total. `timings`: for each estimate,
/// or none.
[[nodiscard]] std::vector<OperatorSum> sum_operators(
    const std::vector<analysis::OperatorEstimate>& estimates,
    const std::vector<OperatorTiming>& timings);

/// Names are those of docs/analyse.md.
[[nodiscard]] nlohmann::ordered_json to_json(const OperatorSum& sum, bool simulated);

}  // namespace systole::testbench

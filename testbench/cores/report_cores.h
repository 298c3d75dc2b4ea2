#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "testbench/cores/core_plan.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/generation/report_generation.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {

/// A finished run of several cores.
struct CoresMeasurement {
  Measurement measurement;  ///< machine: that of the first core
  hw::CoreSystem system;
  Split split = Split::kBatch;
  std::vector<CoreShare> cores;
  double seconds = 0.0;  ///< simulated time of all inferences, and of what a ring generates
  std::optional<GenerationReport> ring;  ///< of the last of `cores`
  CheckResult ring_check;

  [[nodiscard]] double inferences_per_second() const;
  /// Part of the multiply-accumulates of all arrays that were used in that time, 0 to 1.
  [[nodiscard]] double utilisation() const;
};

/// At most kTextWidth columns. `files` have been written (empty names aside).
[[nodiscard]] std::string report_text(const CoresMeasurement& run,
                                      const std::vector<std::string>& files);

/// The statistics document of docs/statistics.md with `split`, `inferences_per_second` and `cores`.
[[nodiscard]] nlohmann::ordered_json to_json(const CoresMeasurement& run);

/// Cores of a system: name, array, clock, registers, link.
[[nodiscard]] std::string core_table(const hw::CoreSystem& system);
/// Who answers which addresses of the bus, and how it arbitrates.
[[nodiscard]] std::string map_text(const hw::CoreSystem& system);
[[nodiscard]] nlohmann::ordered_json map_json(const hw::CoreSystem& system);

}  // namespace systole::testbench

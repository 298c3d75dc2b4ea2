#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "testbench/report/fusion_run.h"

namespace systole::testbench {

/// A network under each of kFusionStepNames.
struct FusionComparison {
  std::string network, machine;
  bool simulated = false;  ///< else cycles are expected ones, and bytes not known
  std::array<FusionRun, kFusionSteps> runs;
  std::vector<std::string> notes;  ///< where a step has another machine than the user's

  /// Bytes in which the steps differ from each other or from the reference.
  [[nodiscard]] std::uint64_t differing() const;
};

/// At most kTextWidth columns.
[[nodiscard]] std::string fusion_comparison_text(const FusionComparison& comparison);
/// `steps`, `saved` and, if it was simulated, `differing_bytes`, as docs/cli.md describes them.
[[nodiscard]] nlohmann::ordered_json fusion_comparison_json(const FusionComparison& comparison);

}  // namespace systole::testbench

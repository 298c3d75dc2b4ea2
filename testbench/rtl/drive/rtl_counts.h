#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace systole::testbench {

/// What a block did while it ran as RTL beside its model.
struct RtlCounts {
  std::uint64_t operations = 0;
  std::uint64_t cycles = 0;      ///< of the RTL's clock
  std::uint64_t mismatches = 0;  ///< values that differ from the model's, operations whose cycles
                                 ///< differ from the contract, and blocks with failed assertions
  std::string source = {};       ///< the folder of a user's own RTL, "": Systole's
};

/// By block.
using RtlReport = std::map<std::string, RtlCounts>;

[[nodiscard]] inline std::uint64_t total_mismatches(const RtlReport& report) {
  std::uint64_t mismatches = 0;
  for (const auto& [block, counts] : report) mismatches += counts.mismatches;
  return mismatches;
}

}  // namespace systole::testbench

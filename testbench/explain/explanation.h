#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "testbench/explain/critical_path.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {

/// A part of a critical path, by the reason for its cycles.
struct PathCause {
  std::string unit;     ///< block of the core, "array"
  std::string cause;    ///< "busy", "in_flight", or a cause of the block's account
  std::string meaning;  ///< one line
  std::uint64_t cycles = 0;
};

/// A part of a critical path, by what the network does in it.
struct PathOperator {
  std::string name;             ///< of all layers and heads: analysis::general_name()
  std::uint64_t times = 0;      ///< operators of that name in the program
  std::uint64_t cycles = 0;     ///< of them all
  std::vector<PathCause> most;  ///< of these cycles by cause, the largest first
};

/// Why a run took its cycles.
struct Explanation {
  std::uint64_t cycles = 0;             ///< of the run
  std::vector<PathStep> path;           ///< in order of time; their cycles are those of the run
  std::vector<PathCause> causes;        ///< their cycles are those of the path; the largest first
  std::vector<PathOperator> operators;  ///< likewise

  /// Cycles of all steps of the path.
  [[nodiscard]] std::uint64_t path_cycles() const;
  /// Of a cause, 0 if the path has none.
  [[nodiscard]] std::uint64_t of(const std::string& unit, const std::string& cause) const;
};

/// Name of the block whose account a unit keeps: "load", "array", "store", "host", "loops".
[[nodiscard]] std::string block_of(hw::Unit unit);

/// What the unit of a command waited for while it executed it, by cause in the order of its account
/// in `blocks`; causes without cycles too.
[[nodiscard]] std::vector<PathCause> stalls_of(const tlm_model::CommandTrace& trace,
                                               const std::vector<hw::BlockReport>& blocks);

/// A critical path by cause; their cycles are those of the path, the largest first. `traces` as of
/// critical_path(); causes have the names of the accounts of `blocks`.
[[nodiscard]] std::vector<PathCause> causes_of(const std::vector<PathStep>& path,
                                               const std::vector<tlm_model::CommandTrace>& traces,
                                               const std::vector<hw::BlockReport>& blocks);

/// Of the first inference of a simulation.
[[nodiscard]] Explanation explain(const hw::Program& program, const SimulationResult& result);

}  // namespace systole::testbench

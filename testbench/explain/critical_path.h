#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tlm/common/observer.h"

namespace systole::testbench {

/// What a step of the critical path is spent on.
enum class Stage : std::uint8_t {
  kFetch,     ///< the command is in flight from memory
  kHost,      ///< the host prepares a call or a loop
  kDispatch,  ///< the processor takes the command
  kExecute,   ///< the unit works on the command: see CommandTrace::stalled
  kInFlight,  ///< the unit goes on, the command's last results are in flight to memory
};
inline constexpr std::size_t kStages = 5;
/// "fetch", "host", "dispatch", "execute", "in_flight".
[[nodiscard]] std::string_view name_of(Stage stage);

/// A part of the time of a run in which what comes after it waits for one command.
struct PathStep {
  std::uint64_t begin = 0, end = 0;  ///< core cycles
  std::uint32_t command = 0;         ///< position in the program; past the last: its end
  Stage stage = Stage::kExecute;
  [[nodiscard]] std::uint64_t cycles() const { return end - begin; }
};

/// The chain of steps from the begin to the end of a run in which each one began when the one
/// before it ended: a command begins when its unit is free, its hazards are clear and it has been
/// dispatched, and whatever was last is on the path. So the steps follow one another without a gap,
/// and their cycles are those of the run. Where several things ended together, the unit comes
/// first, then the hazard.
///
/// `traces`: of one inference, by position in the program, without kEnd's; `begin`, `end`: the
/// first and the last core cycle of the run. In order of time.
[[nodiscard]] std::vector<PathStep> critical_path(
    const std::vector<tlm_model::CommandTrace>& traces, std::uint64_t begin, std::uint64_t end);

}  // namespace systole::testbench

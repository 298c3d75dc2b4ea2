#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/program/program.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/run/core_on_bus.h"
#include "testbench/run/simulation.h"

/// A program in the core in RTL beside the model (run --rtl core).
namespace systole::testbench {

/// When a command of the first inference ran, from the start of the program on.
struct GatesCommand {
  hw::Opcode opcode = hw::Opcode::kEnd;
  CoreCommandTimes gates, model;
};

/// Commands of a kind, from their begin to their end.
struct GatesKind {
  std::uint64_t commands = 0, gates = 0, model = 0;
  std::size_t worst = 0;  ///< the command for which the gates took the most cycles more
};

struct GatesComparison {
  GatesRun run;
  std::vector<GatesCommand> commands;
  std::uint64_t gates = 0, model = 0;      ///< cycles to the end of the last command
  std::uint64_t bytes = 0, differing = 0;  ///< of the outputs of all inferences

  [[nodiscard]] std::map<hw::Opcode, GatesKind> kinds() const;
  /// As of a block in RTL: an operation is a command of an inference.
  [[nodiscard]] RtlCounts counts() const;
};

/// When commands of the model's first inference are dispatched, begin and complete, from the start
/// of the program on.
[[nodiscard]] std::vector<CoreCommandTimes> command_times(const SimulationResult& model);

/// One line.
[[nodiscard]] std::string difference_text(const CommandDifference& difference,
                                          const hw::Program& program);
[[nodiscard]] nlohmann::ordered_json difference_json(const CommandDifference& difference,
                                                     const hw::Program& program);

/// `model` ran the same inferences and kept their outputs.
[[nodiscard]] GatesComparison compare_gates(GatesRun gates, const SimulationResult& model);

[[nodiscard]] nlohmann::ordered_json to_json(const GatesComparison& comparison);

/// Lines on the whole run, and tables: by kind of command, and of programs of up to 64 commands
/// command by command.
[[nodiscard]] std::string gates_text(const GatesComparison& comparison);

}  // namespace systole::testbench

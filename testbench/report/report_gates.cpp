#include "testbench/report/report_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kShownCommands = 64;
/// By CommandDifference::Moment.
constexpr std::array<const char*, 3> kMoments = {"dispatched", "begins", "complete"};

/// From its begin to its end.
std::uint64_t cycles_of(const CoreCommandTimes& times) { return times.completed - times.begun; }

std::int64_t cycles_more(const GatesCommand& command) {
  return static_cast<std::int64_t>(cycles_of(command.gates)) -
         static_cast<std::int64_t>(cycles_of(command.model));
}

/// "23.4%", "-1.0%".
std::string more_text(std::uint64_t gates, std::uint64_t model) {
  if (model == 0) return "-";
  return percent(static_cast<double>(gates) / static_cast<double>(model) - 1.0);
}

/// "23.4% more", "1.0% fewer".
std::string difference_text(std::uint64_t gates, std::uint64_t model) {
  if (gates < model && model != 0) {
    return percent(1.0 - static_cast<double>(gates) / static_cast<double>(model)) + " fewer";
  }
  return more_text(gates, model) + " more";
}

ordered_json times_json(const CoreCommandTimes& times) {
  return {
      {"dispatched", times.dispatched}, {"started", times.started}, {"completed", times.completed}};
}

std::string kinds_table(const GatesComparison& comparison) {
  Table table("command | >commands | >gates | >model | >more | worst: gates and model");
  for (const auto& [opcode, kind] : comparison.kinds()) {
    const GatesCommand& worst = comparison.commands[kind.worst];
    table.add({std::string(hw::name_of(opcode)), grouped(kind.commands), grouped(kind.gates),
               grouped(kind.model), more_text(kind.gates, kind.model),
               fmt::format("{}: {} and {}", kind.worst, grouped(cycles_of(worst.gates)),
                           grouped(cycles_of(worst.model)))});
  }
  return table.text();
}

std::string commands_table(const GatesComparison& comparison) {
  Table table("command | >dispatched | >model | >started | >model | >completed | >model | >more");
  for (std::size_t i = 0; i < comparison.commands.size(); ++i) {
    const GatesCommand& command = comparison.commands[i];
    const CoreCommandTimes &gates = command.gates, &model = command.model;
    table.add({fmt::format("{} {}", i, hw::name_of(command.opcode)), grouped(gates.dispatched),
               grouped(model.dispatched), grouped(gates.started), grouped(model.started),
               grouped(gates.completed), grouped(model.completed),
               fmt::format("{}", cycles_more(command))});
  }
  return table.text();
}

}  // namespace

std::map<hw::Opcode, GatesKind> GatesComparison::kinds() const {
  std::map<hw::Opcode, GatesKind> kinds;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const GatesCommand& command = commands[i];
    GatesKind& kind = kinds[command.opcode];
    if (kind.commands++ == 0 || cycles_more(command) > cycles_more(commands[kind.worst])) {
      kind.worst = i;
    }
    kind.gates += cycles_of(command.gates);
    kind.model += cycles_of(command.model);
  }
  return kinds;
}

RtlCounts GatesComparison::counts() const {
  return {commands.size() * run.outputs.size(), run.cycles, differing + (run.failed ? 1 : 0), {}};
}

std::vector<CoreCommandTimes> command_times(const SimulationResult& model) {
  std::vector<CoreCommandTimes> times;
  for (const tlm_model::CommandTrace& trace : model.traces) {
    const std::uint64_t started = trace.started - model.started;
    times.push_back(
        {trace.dispatched - model.started, started, started, 0, trace.completed - model.started});
  }
  return times;
}

std::string difference_text(const CommandDifference& difference, const hw::Program& program) {
  return fmt::format("command {}, {}: {} in cycle {} in gates, in {} in the model\n",
                     difference.command,
                     hw::name_of(program.commands.at(difference.command).opcode()),
                     kMoments.at(static_cast<std::size_t>(difference.moment)),
                     grouped(difference.found), grouped(difference.expected));
}

ordered_json difference_json(const CommandDifference& difference, const hw::Program& program) {
  return {{"command", difference.command},
          {"opcode", hw::name_of(program.commands.at(difference.command).opcode())},
          {"moment", kMoments.at(static_cast<std::size_t>(difference.moment))},
          {"gates", difference.found},
          {"model", difference.expected}};
}

GatesComparison compare_gates(GatesRun gates, const SimulationResult& model) {
  if (gates.commands.size() != model.traces.size() ||
      gates.outputs.size() != model.outputs.size()) {
    throw std::logic_error("gates and model ran different programs");
  }
  GatesComparison comparison;
  const std::vector<CoreCommandTimes> of_model = command_times(model);
  for (std::size_t i = 0; i < gates.commands.size(); ++i) {
    comparison.commands.push_back({model.traces[i].opcode, gates.commands[i], of_model[i]});
    comparison.gates = std::max(comparison.gates, gates.commands[i].completed);
    comparison.model = std::max(comparison.model, of_model[i].completed);
  }
  for (std::size_t i = 0; i < gates.outputs.size(); ++i) {
    const std::vector<std::uint8_t>&is = gates.outputs[i], &should = model.outputs[i];
    comparison.bytes += should.size();
    if (is.size() != should.size()) throw std::logic_error("outputs of different sizes");
    for (std::size_t b = 0; b < is.size(); ++b) comparison.differing += is[b] != should[b] ? 1 : 0;
  }
  comparison.run = std::move(gates);
  return comparison;
}

ordered_json to_json(const GatesComparison& comparison) {
  ordered_json kinds = ordered_json::object();
  for (const auto& [opcode, kind] : comparison.kinds()) {
    kinds[std::string(hw::name_of(opcode))] = {{"commands", kind.commands},
                                               {"gates", kind.gates},
                                               {"model", kind.model},
                                               {"worst", kind.worst}};
  }
  ordered_json commands = ordered_json::array();
  for (const GatesCommand& command : comparison.commands) {
    commands.push_back({{"opcode", hw::name_of(command.opcode)},
                        {"gates", times_json(command.gates)},
                        {"model", times_json(command.model)}});
  }
  return {{"cycles", comparison.gates},
          {"model_cycles", comparison.model},
          {"compared_bytes", comparison.bytes},
          {"mismatched_bytes", comparison.differing},
          {"wall_seconds", comparison.run.wall_seconds},
          {"kinds", std::move(kinds)},
          {"commands", std::move(commands)}};
}

std::string gates_text(const GatesComparison& comparison) {
  std::string text = fmt::format(
      "core in RTL: {}, model {}, {}; {} of {} differ\nco-simulation: {} in {}, {}\n\n",
      counted(comparison.gates, "cycle"), grouped(comparison.model),
      difference_text(comparison.gates, comparison.model), grouped(comparison.differing),
      counted(comparison.bytes, "byte"), counted(comparison.run.cycles, "cycle"),
      with_prefix(comparison.run.wall_seconds, "s"),
      with_prefix(static_cast<double>(comparison.run.cycles) / comparison.run.wall_seconds,
                  "cycles/s"));
  text += kinds_table(comparison);
  if (comparison.commands.size() > kShownCommands) return text;
  return text + "\n" + commands_table(comparison);
}

}  // namespace systole::testbench

#include "testbench/explain/explanation.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "analysis/mapped_cost.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

/// Names of the blocks, by hw::Unit.
constexpr std::array<const char*, hw::kUnits> kBlocks = {"load", "array", "store", "host", "loops"};

struct Meaning {
  const char *cause, *text;
};
constexpr std::array<Meaning, kStages> kMeanings = {{
    {"fetch", "the next command has not arrived from memory"},
    {"host", "the host prepares a library call or configures a loop"},
    {"dispatch", "the processor takes a command, one a cycle"},
    {"busy", "working"},
    {"in_flight", "the last results of a command are on their way to memory"},
}};

const hw::TimeAccount* account_of(const std::vector<hw::BlockReport>& blocks,
                                  const std::string& name) {
  for (const hw::BlockReport& block : blocks) {
    if (block.name == name && block.time) return &*block.time;
  }
  return nullptr;
}

/// Adds up cycles by unit and cause.
class Sums {
 public:
  void add(const PathCause& cause) {
    if (cause.cycles == 0) return;
    PathCause& sum = sums_[{cause.unit, cause.cause}];
    const std::uint64_t cycles = sum.cycles + cause.cycles;
    sum = cause;
    sum.cycles = cycles;
  }
  /// The largest first.
  [[nodiscard]] std::vector<PathCause> sorted() const {
    std::vector<PathCause> causes;
    for (const auto& entry : sums_) causes.push_back(entry.second);
    std::stable_sort(causes.begin(), causes.end(),
                     [](const PathCause& a, const PathCause& b) { return a.cycles > b.cycles; });
    return causes;
  }

 private:
  std::map<std::pair<std::string, std::string>, PathCause> sums_;
};

PathCause cause_of(Stage stage, std::string unit, std::uint64_t cycles) {
  const Meaning& meaning = kMeanings.at(static_cast<std::size_t>(stage));
  return {std::move(unit), meaning.cause, meaning.text, cycles};
}

/// Calls visit(cause) for the causes of a step.
template <typename Visit>
void split(const PathStep& step, const CommandTrace& trace,
           const std::vector<hw::BlockReport>& blocks, Visit visit) {
  const std::string unit = block_of(trace.unit);
  if (step.stage == Stage::kInFlight) return visit(cause_of(step.stage, unit, step.cycles()));
  if (step.stage != Stage::kExecute) {
    return visit(cause_of(step.stage, "command_processor", step.cycles()));
  }
  std::uint64_t left = step.cycles();
  for (PathCause& stall : stalls_of(trace, blocks)) {
    stall.cycles = std::min(left, stall.cycles);
    left -= stall.cycles;
    visit(stall);
  }
  visit(cause_of(Stage::kExecute, unit, left));
}

}  // namespace

std::string block_of(hw::Unit unit) { return kBlocks.at(static_cast<std::size_t>(unit)); }

std::vector<PathCause> stalls_of(const CommandTrace& trace,
                                 const std::vector<hw::BlockReport>& blocks) {
  const std::string unit = block_of(trace.unit);
  std::vector<PathCause> stalls;
  const hw::TimeAccount* const account = account_of(blocks, unit);
  // The first cause of each unit is that it has no command: before it executes one.
  for (std::size_t i = 1; account != nullptr && i < account->stalled.size(); ++i) {
    const hw::TimeAccount::Stall& stall = account->stalled[i];
    stalls.push_back({unit, stall.cause, stall.meaning, trace.stalled.at(i)});
  }
  return stalls;
}

std::uint64_t Explanation::path_cycles() const {
  std::uint64_t sum = 0;
  for (const PathStep& step : path) sum += step.cycles();
  return sum;
}

std::uint64_t Explanation::of(const std::string& unit, const std::string& cause) const {
  for (const PathCause& each : causes) {
    if (each.unit == unit && each.cause == cause) return each.cycles;
  }
  return 0;
}

std::vector<PathCause> causes_of(const std::vector<PathStep>& path,
                                 const std::vector<CommandTrace>& traces,
                                 const std::vector<hw::BlockReport>& blocks) {
  Sums sums;
  for (const PathStep& step : path) {
    const std::size_t command = std::min<std::size_t>(step.command, traces.size() - 1);
    split(step, traces[command], blocks, [&](const PathCause& cause) { sums.add(cause); });
  }
  return sums.sorted();
}

Explanation explain(const hw::Program& program, const SimulationResult& result) {
  Explanation explanation;
  explanation.cycles = result.cycles.front();
  explanation.path = critical_path(result.traces, result.started, result.finished);

  std::vector<std::size_t> line_of;
  std::vector<Sums> sums;
  std::map<std::string, std::size_t> lines;
  for (const hw::Operator& op : program.operators) {
    const std::string name = analysis::general_name(op.name);
    const auto line = lines.try_emplace(name, explanation.operators.size());
    if (line.second) explanation.operators.push_back({name, 0, 0, {}});
    ++explanation.operators[line.first->second].times;
    line_of.push_back(line.first->second);
  }
  sums.resize(explanation.operators.size());
  Sums all;
  for (const PathStep& step : explanation.path) {
    // The end of the program belongs to what it ends.
    const std::size_t command = std::min<std::size_t>(step.command, result.traces.size() - 1);
    const CommandTrace& trace = result.traces[command];
    const std::size_t line = line_of[trace.op];
    explanation.operators[line].cycles += step.cycles();
    split(step, trace, result.blocks, [&](const PathCause& cause) {
      all.add(cause);
      sums[line].add(cause);
    });
  }
  explanation.causes = all.sorted();
  for (std::size_t i = 0; i < sums.size(); ++i) explanation.operators[i].most = sums[i].sorted();
  std::stable_sort(
      explanation.operators.begin(), explanation.operators.end(),
      [](const PathOperator& a, const PathOperator& b) { return a.cycles > b.cycles; });
  return explanation;
}

}  // namespace systole::testbench

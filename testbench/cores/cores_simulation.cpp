#include "testbench/cores/cores_simulation.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <sstream>

#include "testbench/cores/alone_run.h"
#include "testbench/cores/cores_run.h"
#include "testbench/cores/ring_beside.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

/// Simulates one core of the plan alone: the order says which tasks, the result is a summary().
std::string simulate_alone(const CorePlan& plan,
                           const std::vector<std::vector<std::uint8_t>>& inputs,
                           const RingPart* ring, std::size_t core, const std::string& order) {
  CoresOptions options;
  options.functional = false;
  RingPart quiet;
  if (ring != nullptr) {
    quiet = *ring;
    quiet.rtl = nullptr;  // one process writes waveforms
    options.ring = &quiet;
  }
  CoresRun run(plan, inputs, options);
  std::istringstream numbers(order);
  run.run_alone(core, {std::istream_iterator<std::size_t>(numbers), {}});
  return run.summary(core);
}

void take_alone(CoreShare& share, const std::string& summary) {
  std::istringstream text(summary);
  RequestTimes& times = share.alone_requests;
  text >> share.alone >> times.requests >> times.walks >> times.fetches >> times.bytes >>
      times.request_wait >> times.data_wait >> times.target_time;
  for (PathShare& part : share.path) part.alone = 0;
  std::string unit, cause, meaning;
  for (std::uint64_t cycles = 0; text >> unit >> cause >> cycles;) {
    std::getline(text >> std::ws, meaning);
    const auto found = std::find_if(
        share.path.begin(), share.path.end(),
        [&](const PathShare& part) { return part.unit == unit && part.cause == cause; });
    if (found != share.path.end()) {
      found->alone = cycles;
    } else {
      share.path.push_back({unit, cause, meaning, 0, cycles});
    }
  }
  std::stable_sort(share.path.begin(), share.path.end(),
                   [](const PathShare& a, const PathShare& b) {
                     return static_cast<std::int64_t>(a.together - a.alone) >
                            static_cast<std::int64_t>(b.together - b.alone);
                   });
}

}  // namespace

CoresResult simulate(const CorePlan& plan, const std::vector<std::vector<std::uint8_t>>& inputs,
                     const CoresOptions& options) {
  const model::Graph& graph = *plan.graph;
  if (options.functional) {
    check_input_sizes(inputs, graph.name, graph.tensors[input_tensor(graph)].bytes());
  }
  const std::size_t count = plan.system.cores.size() + (options.ring != nullptr ? 1 : 0);
  std::deque<AloneRun> alone;
  if (options.alone && count > 1) {
    for (std::size_t core = 0; core < count; ++core) {
      alone.emplace_back([&, core](const std::string& order) {
        return simulate_alone(plan, inputs, options.ring, core, order);
      });
    }
  }
  std::optional<LogitsAlone> logits;
  std::optional<RingPart> checked;
  CoresOptions how = options;
  if (options.ring != nullptr && options.functional && options.check) {
    logits.emplace(*options.ring);
    checked = *options.ring;
    checked->task.on_logits = [&logits](std::uint32_t position, const std::vector<hw::Half>& row) {
      logits->add(position, row);
    };
    how.ring = &*checked;
  }
  CoresRun run(plan, inputs, how);
  run.run_all();
  CoresResult result = run.result();
  // Two at a time would do for two processors; there are at most as many as cores.
  for (std::size_t core = 0; core < alone.size(); ++core) {
    std::string order;
    for (const std::size_t task : run.tasks_of(core)) order += std::to_string(task) + " ";
    if (order.empty()) continue;
    alone[core].start(order);
  }
  for (std::size_t core = 0; core < alone.size(); ++core) {
    if (result.cores[core].tasks != 0) take_alone(result.cores[core], alone[core].result());
  }
  if (logits) result.ring_check = logits->compare();
  return result;
}

}  // namespace systole::testbench

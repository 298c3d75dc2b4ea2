#include "testbench/explain/command_stages.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "testbench/explain/explanation.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

void add_span(std::vector<CommandSpan>& spans, std::string name, std::uint64_t begin,
              std::uint64_t end) {
  if (begin < end) spans.push_back({std::move(name), begin, end});
}

}  // namespace

void for_each_command(const std::vector<CommandTrace>& traces,
                      const std::vector<hw::BlockReport>& blocks,
                      const std::function<void(const CommandTrace&, const CommandStages&)>& visit) {
  // When each unit was done with its last command.
  std::array<std::uint64_t, hw::kUnits> all_free{};
  for (const CommandTrace& trace : traces) {
    const tlm_model::DispatchSteps& steps = trace.dispatch;
    const bool host = trace.unit == hw::Unit::kHost;
    // A unit takes one command after the other; a loop unroller several at a time.
    const bool loop = trace.unit == hw::Unit::kLoop;
    std::uint64_t& free = all_free.at(static_cast<std::size_t>(trace.unit));
    const std::uint64_t taken =
        trace.was_blocked && !loop ? std::max(free, trace.dispatched) : trace.started;
    CommandStages command;
    add_span(command.stages, "fetch", steps.begun, steps.fetched);
    add_span(command.stages, "fence", steps.fetched, steps.fenced);
    add_span(command.stages, "host", steps.fenced, steps.issued);
    // A command of the host has no station: it waits for all before it.
    add_span(command.stages, host ? "fence" : "station", steps.issued, steps.room);
    add_span(command.stages, "dispatch", steps.room, trace.dispatched);
    add_span(command.stages, "queue", trace.dispatched, taken);
    add_span(command.stages, "hazard", taken, trace.started);
    // Konata draws arrows between stages with an X in their name.
    add_span(command.stages, "X " + block_of(trace.unit), trace.started, trace.released);
    add_span(command.stages, "in_flight", trace.released, trace.completed);

    if (trace.was_blocked) {
      const hw::Unit blocker = traces[trace.blocker].unit;
      add_span(command.stalls, "wait " + block_of(blocker), taken, trace.started);
    }
    std::uint64_t at = loop ? std::max(free, trace.started) : trace.started;
    for (const PathCause& stall : stalls_of(trace, blocks)) {
      add_span(command.stalls, stall.cause, at, at + stall.cycles);
      at += stall.cycles;
    }
    free = loop ? trace.completed : trace.released;
    visit(trace, command);
  }
}

}  // namespace systole::testbench

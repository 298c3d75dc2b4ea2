#include "testbench/run/operator_timing.h"

#include <algorithm>

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

hw::Unit unit_of(const analysis::OperatorEstimate& estimate) {
  switch (estimate.bound.resource()) {
    case analysis::Resource::kArray:
      return hw::Unit::kCompute;
    case analysis::Resource::kPostop:
      return hw::Unit::kStore;
    case analysis::Resource::kHost:
      return hw::Unit::kHost;
    default:
      return 2 * estimate.store_unit_bytes > estimate.read_bytes + estimate.written_bytes
                 ? hw::Unit::kStore
                 : hw::Unit::kLoad;
  }
}

/// Shares the time of the units out to the operators that were next to complete in it.
class OperatorSharing {
 public:
  OperatorSharing(const std::vector<CommandTrace>& traces,
                  const std::vector<analysis::OperatorEstimate>& estimates)
      : traces_(traces), estimates_(estimates), timings_(estimates.size()) {
    OperatorEnds ends;
    for (const CommandTrace& trace : traces) {
      ends.add(trace);
      timings_[trace.op].events.add(trace.events);
    }
    begin_ = ends.begin();
    ends_ = ends.ends(estimates.size());
    std::uint64_t end = begin_;
    for (std::size_t op = 0; op < ends_.size(); ++op) {
      timings_[op].cycles = ends_[op] - end;
      end = ends_[op];
    }
  }

  std::vector<OperatorTiming> run() {
    for (const hw::Unit unit :
         {hw::Unit::kLoad, hw::Unit::kCompute, hw::Unit::kStore, hw::Unit::kHost}) {
      share_unit(unit);
    }
    for (std::size_t op = 0; op < timings_.size(); ++op) {
      cause(op, Cause::kCommands) -= estimates_[op].bound.cycles();
    }
    return std::move(timings_);
  }

 private:
  double& cause(std::size_t op, Cause why) {
    return timings_[op].causes[static_cast<std::size_t>(why)];
  }

  void share_unit(hw::Unit unit) {
    std::uint64_t free = begin_;
    for (const CommandTrace& trace : traces_) {
      if (trace.unit != unit) continue;
      const std::uint64_t taken = std::max(free, trace.dispatched);
      wait(unit, free, taken, Cause::kNoCommand);
      wait(unit, taken, trace.started, waiting(trace));
      execute(unit, trace);
      free = trace.released;
    }
    wait(unit, free, ends_.back(), Cause::kEnd);
  }

  [[nodiscard]] Cause waiting(const CommandTrace& trace) const {
    if (!trace.was_blocked) return Cause::kNoCommand;
    const auto unit = static_cast<std::size_t>(traces_[trace.blocker].unit);
    return static_cast<Cause>(static_cast<std::size_t>(Cause::kWaitLoad) + unit);
  }

  /// Calls visit(operator, cycles) for the parts of [from, to).
  template <typename Visit>
  void split(std::uint64_t from, std::uint64_t to, Visit visit) const {
    auto at = std::upper_bound(ends_.begin(), ends_.end(), from);
    for (; from < to && at != ends_.end(); ++at) {
      const std::uint64_t end = std::min(to, *at);
      if (end > from) visit(static_cast<std::size_t>(at - ends_.begin()), end - from);
      from = std::max(from, end);
    }
  }

  void wait(hw::Unit unit, std::uint64_t from, std::uint64_t to, Cause why) {
    split(from, to, [&](std::size_t op, std::uint64_t cycles) {
      if (unit_of(estimates_[op]) == unit) cause(op, why) += static_cast<double>(cycles);
    });
  }

  void execute(hw::Unit unit, const CommandTrace& trace) {
    if (unit_of(estimates_[trace.op]) == unit) {
      const auto cycles = static_cast<double>(trace.released - trace.started);
      cause(trace.op, Cause::kCommands) += cycles;
      cause(trace.op, Cause::kEarlier) -= cycles;
    }
    split(trace.started, trace.released, [&](std::size_t op, std::uint64_t cycles) {
      if (unit_of(estimates_[op]) != unit) return;
      // What is done in time is not done earlier.
      cause(op, op == trace.op ? Cause::kEarlier : Cause::kOthers) += static_cast<double>(cycles);
    });
  }

  const std::vector<CommandTrace>& traces_;
  const std::vector<analysis::OperatorEstimate>& estimates_;
  std::uint64_t begin_ = 0;
  std::vector<std::uint64_t> ends_;  ///< by operator, none before its predecessor
  std::vector<OperatorTiming> timings_;
};

}  // namespace

void OperatorEnds::add(const CommandTrace& trace) {
  begin_ = std::min(begin_, trace.dispatched);
  if (trace.op >= ends_.size()) ends_.resize(trace.op + 1);
  ends_[trace.op] = std::max(ends_[trace.op], trace.completed);
}

std::vector<std::uint64_t> OperatorEnds::ends(std::size_t operators) const {
  std::vector<std::uint64_t> ends = ends_;
  ends.resize(operators);
  std::uint64_t end = begin_;
  for (std::uint64_t& each : ends) end = each = std::max(each, end);
  return ends;
}

std::string_view name_of(Cause cause) {
  constexpr std::array<std::string_view, kCauses> kNames = {
      "commands",  "earlier",      "others",     "no_command",
      "wait_load", "wait_compute", "wait_store", "end"};
  return kNames.at(static_cast<std::size_t>(cause));
}

std::vector<OperatorTiming> time_operators(
    const std::vector<CommandTrace>& traces,
    const std::vector<analysis::OperatorEstimate>& estimates) {
  return OperatorSharing(traces, estimates).run();
}

}  // namespace systole::testbench

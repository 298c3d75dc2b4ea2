#include "testbench/explain/critical_path.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;
using tlm_model::DispatchSteps;

constexpr std::uint32_t kNoCommand = DispatchSteps::kNoCommand;

/// Walks from the end of the run to its begin.
class Walk {
 public:
  Walk(const std::vector<CommandTrace>& traces, std::uint64_t begin, std::uint64_t end)
      : traces_(traces), begin_(begin), at_(end) {
    std::array<std::uint32_t, hw::kUnits> last;
    last.fill(kNoCommand);
    for (std::uint32_t i = 0; i < traces.size(); ++i) {
      std::uint32_t& of_unit = last[static_cast<std::size_t>(traces[i].unit)];
      before_.push_back(of_unit);
      of_unit = i;
    }
  }

  std::vector<PathStep> run() {
    const auto count = static_cast<std::uint32_t>(traces_.size());
    const auto last = std::max_element(
        traces_.begin(), traces_.end(),
        [](const CommandTrace& a, const CommandTrace& b) { return a.completed < b.completed; });
    if (last != traces_.end() && last->completed == at_) {
      go_to_completion(static_cast<std::uint32_t>(last - traces_.begin()));
    } else {
      // The end of the program came after all that it has to wait for.
      go_to_processor(count, count);
    }
    while (next_ != nullptr) (this->*next_)();
    std::reverse(steps_.begin(), steps_.end());
    return std::move(steps_);
  }

 private:
  using Action = void (Walk::*)();

  void spend(std::uint64_t since, Stage stage) {
    since = std::max(since, begin_);
    if (since >= at_) return;
    steps_.push_back({since, at_, command_, stage});
    at_ = since;
  }

  void go_to_completion(std::uint32_t command) {
    command_ = command;
    next_ = &Walk::completion;
  }
  void go_to_execution(std::uint32_t command) {
    command_ = command;
    next_ = &Walk::execution;
  }
  /// To when the processor began on `command`; the cycles since then are those of `waiting`.
  void go_to_processor(std::uint32_t command, std::uint32_t waiting) {
    command_ = waiting;
    if (command == 0) {
      spend(begin_, Stage::kFetch);
      next_ = nullptr;
      return;
    }
    const CommandTrace& before = traces_[command - 1];
    const bool host = before.unit == hw::Unit::kHost;
    spend(host ? before.completed : before.dispatched, Stage::kFetch);
    command_ = command - 1;
    next_ = host ? &Walk::completion : &Walk::dispatch;
  }

  void completion() {
    spend(traces_[command_].released, Stage::kInFlight);
    next_ = &Walk::execution;
  }

  void execution() {
    const CommandTrace& trace = traces_[command_];
    const std::uint32_t before = before_[command_];
    // Loops overlap, but end in order.
    if (before != kNoCommand && trace.unit == hw::Unit::kLoop &&
        traces_[before].completed > trace.started) {
      spend(traces_[before].completed, Stage::kExecute);
      return go_to_completion(before);
    }
    spend(trace.started, Stage::kExecute);
    if (at_ == begin_) {
      next_ = nullptr;
    } else if (before != kNoCommand && traces_[before].released == at_) {
      go_to_execution(before);
    } else if (trace.was_blocked && trace.ready == at_) {
      // A matmul's operands may be written over a cycle after it has let go of the array.
      const bool executes = trace.blocker_released && at_ <= traces_[trace.blocker].released;
      executes ? go_to_execution(trace.blocker) : go_to_completion(trace.blocker);
    } else {
      next_ = &Walk::dispatch;
    }
  }

  void dispatch() {
    const DispatchSteps& steps = traces_[command_].dispatch;
    spend(steps.room, Stage::kDispatch);
    if (steps.room > steps.issued && steps.room_by != kNoCommand) {
      return go_to_completion(steps.room_by);
    }
    spend(steps.fenced, Stage::kHost);
    if (steps.fenced > steps.fetched && steps.fence_by != kNoCommand) {
      return go_to_completion(steps.fence_by);
    }
    go_to_processor(command_, command_);
  }

  const std::vector<CommandTrace>& traces_;
  const std::uint64_t begin_;
  std::uint64_t at_;
  std::vector<std::uint32_t> before_;  ///< by command: the one before it in its unit
  std::vector<PathStep> steps_;        ///< latest first
  std::uint32_t command_ = 0;
  Action next_ = nullptr;
};

}  // namespace

std::string_view name_of(Stage stage) {
  constexpr std::array<std::string_view, kStages> kNames = {"fetch", "host", "dispatch", "execute",
                                                            "in_flight"};
  return kNames.at(static_cast<std::size_t>(stage));
}

std::vector<PathStep> critical_path(const std::vector<CommandTrace>& traces, std::uint64_t begin,
                                    std::uint64_t end) {
  return Walk(traces, begin, end).run();
}

}  // namespace systole::testbench

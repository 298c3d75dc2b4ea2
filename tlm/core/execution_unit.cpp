#include "tlm/core/execution_unit.h"

#include <utility>

#include "tlm/common/rtl_stack.h"

namespace systole::tlm_model {
namespace {

using Causes = std::vector<hw::BlockAccount::Cause>;

Causes with_common(Causes own) {
  Causes causes{{"no_command", "no command has been dispatched to this unit"},
                {"wait_load", "the last hazard to clear was a load"},
                {"wait_compute", "the last hazard to clear was a matmul"},
                {"wait_store", "the last hazard to clear was a store or move"}};
  causes.insert(causes.end(), std::make_move_iterator(own.begin()),
                std::make_move_iterator(own.end()));
  return causes;
}

}  // namespace

ExecutionUnit::ExecutionUnit(const sc_core::sc_module_name& name, hw::Unit unit,
                             CommandProcessor& processor,
                             std::vector<hw::BlockAccount::Cause> own_causes)
    : sc_module(name),
      unit_(unit),
      processor_(processor),
      account_("cycles", with_common(std::move(own_causes))) {
  SC_HAS_PROCESS(ExecutionUnit);
  SC_THREAD(run);
  set_stack_size(kRtlStackBytes);
}

void ExecutionUnit::wait_cycles(std::uint64_t cycles) {
  const Clock& clock = processor_.clock();
  if (cycles > 0) wait(clock.edge(cycle() + cycles) - sc_core::sc_time_stamp());
}

void ExecutionUnit::run() {
  for (;;) {
    op_ = command_ = kNoIndex;
    accumulator_half_ = kNoHalf;
    Entry& entry = processor_.next(unit_, account_, kNoCommand);
    waiting_ = &entry;
    op_ = entry.command.op + processor_.shown_operator();
    command_ = entry.index + processor_.shown_command();
    if (!entry.is_ready()) {
      processor_.wait_ready(entry);
      account_.stall_until(cycle(), kWaitLoad + static_cast<std::size_t>(entry.last_blocker));
    }
    await_turn(entry);
    waiting_ = nullptr;
    const std::uint64_t started = cycle();
    const StallMark mark(account_.time());
    const std::uint64_t moved = moved_bytes();
    events_ = {};
    const std::optional<std::uint64_t> completed = execute(entry);
    events_.bus_bytes = events_.dram_bytes = moved_bytes() - moved;
    entry.events = events_;
    entry.stalled = mark.since(account_.time());
    if (completed) processor_.complete_at(entry, started, cycle(), *completed);
  }
}

hw::BlockReport ExecutionUnit::report(std::uint64_t end) const {
  return account_.report(basename(), end, counters());
}

void ExecutionUnit::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, op_, prefix + "operator");
  sc_core::sc_trace(file, command_, prefix + "command");
  if (unit_ != hw::Unit::kLoad) {
    sc_core::sc_trace(file, accumulator_half_, prefix + "accumulator_half", 2);
  }
}

void ExecutionUnit::watch(SignalRecorder& recorder) {
  recorder_ = &recorder;
  state_ = std::make_unique<AccountSignal>(recorder, std::string(name()) + ".state", account_,
                                           &processor_.clock());
  account_.watch(*state_);
}

// What a unit does with a command is shown when it is known: at its end, or at that of a wait.
std::uint64_t ExecutionUnit::settled_ps() const {
  return command_ == kNoIndex ? Watched::settled_ps() : ps(account_.now());
}

}  // namespace systole::tlm_model

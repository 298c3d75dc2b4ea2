#include <algorithm>
#include <sstream>
#include <utility>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "testbench/cores/cores_run.h"

namespace systole::testbench {

RequestTimes CoresRun::requests(std::size_t index) const {
  RequestTimes sum;
  tlm_model::Core& core = *system_->cores[index].core;
  const std::vector<tlm_model::DmaPort*> ports = core.ports();
  for (std::size_t i = 0; i < system_->cores[index].ports.size(); ++i) {
    const tlm_model::BusCore::Initiator& of =
        system_->bus.core().initiators().at(system_->cores[index].ports[i]);
    const std::uint64_t requests = of.reads + of.writes;
    sum.add(of);
    const tlm_model::DmaPort* const port = i < ports.size() ? ports[i] : nullptr;  // of loops
    if (port == core.processor.fetch.get()) sum.fetches += requests;
    if (core.mmu && (port == core.mmu->load_walker.get() || port == core.mmu->store_walker.get())) {
      sum.walks += requests;
    }
  }
  return sum;
}

CoreShare CoresRun::share(const CoreState& state) const {
  CoreShare share;
  share.name = plan_.system.cores[state.index].name;
  share.tasks = state.tasks.size();
  share.running = share.alone = state.running;
  share.wait = state.wait;
  share.total = state.core->processor.cycle();
  share.done = share.total - state.finished;
  share.host = share.total - share.running - share.wait - share.done;
  share.macs = state.macs;
  share.traffic = system_->core_traffic(state.index);
  for (const auto& [key, cycles] : state.path) {
    share.path.push_back({key.unit, key.cause, key.meaning, cycles, cycles});
  }
  share.together_requests = share.alone_requests = requests(state.index);
  return share;
}

std::string CoresRun::summary(std::size_t index) const {
  const CoreShare of = index < states_.size() ? share(states_[index]) : ring_->share();
  const RequestTimes& times = of.together_requests;
  std::ostringstream text;
  text << of.running << ' ' << times.requests << ' ' << times.walks << ' ' << times.fetches << ' '
       << times.bytes << ' ' << times.request_wait << ' ' << times.data_wait << ' '
       << times.target_time << '\n';
  for (const PathShare& part : of.path) {
    text << part.unit << ' ' << part.cause << ' ' << part.together << ' ' << part.meaning << '\n';
  }
  return text.str();
}

CoresResult CoresRun::result() {
  CoresResult result;
  if (!fault_.empty()) throw hw::InputError("program: " + fault_);
  static_cast<MachineRun&>(result) = run_;
  const tlm_model::Clock& clock = system_->cores.front().clock;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    result.cycles.push_back(clock.cycle_from_ps(ended_ps_[i]) - clock.cycle_from_ps(begun_ps_[i]));
  }
  if (plan_.split == Split::kBatch) {
    const hw::Machine& machine = plan_.system.cores.front().machine;
    result.bounds.assign(inputs_.size(), analysis::lower_bound(*plan_.graph, machine).cycles());
  }
  result.outputs = outputs_;
  result.total_cycles = system_->core.processor.cycle();
  result.seconds = sc_core::sc_time_stamp().to_seconds();
  for (const CoreState& state : states_) {
    result.cores.push_back(share(state));
    for (const auto& checker : state.checkers) {
      if (checker) result.check.add(checker->result());
    }
  }
  if (ring_) {
    result.ring = ring_->result();
    result.cores.push_back(ring_->share());
  }
  result.wave_is_cut_short = wave_is_cut_short_;
  result.traffic = system_->core_traffic();
  result.events = system_->energy_events();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    result.core_events.push_back(system_->core_events(i));
  }
  result.tensors = recorder_.take();
  for (CoreState& state : states_) result.first_tasks.push_back(state.first);
  result.traces = result.first_tasks.front().traces;
  result.started = result.first_tasks.front().started;
  result.finished = result.first_tasks.front().finished;
  result.classes = classes_;
  result.commands = commands_;
  return result;
}

}  // namespace systole::testbench

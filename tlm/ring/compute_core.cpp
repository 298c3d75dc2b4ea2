#include "tlm/ring/compute_core.h"

#include <algorithm>
#include <string>
#include <utility>

namespace systole::tlm_model::dfx {

using hw::dfx::Opcode;
using hw::dfx::Phase;
using hw::dfx::Sync;

namespace {

std::unique_ptr<hw::RouterEngine> make_router(const hw::Machine& machine) {
  return std::make_unique<hw::RouterModel>(machine.ring.router_cycles);
}

}  // namespace

ComputeCore::ComputeCore(const sc_core::sc_module_name& name, const hw::Machine& machine,
                         std::uint32_t core, std::uint32_t register_elements, CoreMemory* memory,
                         HalfEngines engines)
    : sc_module(name),
      router("router", machine, core,
             engines.router ? std::move(engines.router) : make_router(machine)),
      machine_(machine),
      core_(core),
      clock_(machine.core.clock_mhz),
      timing_(machine, register_elements) {
  if (memory != nullptr)
    values_ = std::make_unique<CoreValues>(machine, register_elements, *memory, std::move(engines));
  SC_HAS_PROCESS(ComputeCore);
  SC_THREAD(run);
}

void ComputeCore::start(const hw::dfx::Pass& pass) {
  pass_ = &pass;
  start_.notify(sc_core::SC_ZERO_TIME);
}

void ComputeCore::account(Phase phase, std::uint64_t end) {
  if (end <= end_) return;
  if (signals_) {
    signals_->recorder->hold(signals_->phase, clock_.edge_ps(end_), clock_.edge_ps(end),
                             static_cast<std::uint64_t>(phase));
  }
  phases_[static_cast<std::size_t>(phase)] += end - end_;
  end_ = end;
}

void ComputeCore::run() {
  while (true) {
    wait(start_);
    const std::uint64_t now = clock_.cycle_from(sc_core::sc_time_stamp());
    timing_.start(now);
    end_ = now;
    pass_began_ps_ = to_ps(sc_core::sc_time_stamp());
    for (const Instruction& instruction : pass_->instructions) {
      if (instruction.op == Opcode::kSync) {
        sync(instruction);
        continue;
      }
      const CoreTiming::Times times = timing_.issue(instruction);
      account(instruction.phase, times.end);
      if (values_) values_->execute(instruction, times.begin);
      tell(instruction, times);
    }
    const sc_core::sc_time end = clock_.edge(end_);
    if (end > sc_core::sc_time_stamp()) wait(end - sc_core::sc_time_stamp());
    pass_ = nullptr;
    done_.notify();
  }
}

void ComputeCore::sync(const Instruction& instruction) {
  const Exchange& exchange = pass_->exchanges[instruction.exchange];
  const std::uint32_t sequence = exchanges_++;
  const std::uint32_t first = exchange.sums ? exchange.first.front() : exchange.first[core_];
  const std::uint32_t last = exchange.sums ? exchange.first.back() : exchange.first[core_ + 1];
  const std::uint64_t begin = timing_.sync_begin(exchange.base + first, last - first);
  // What the work before it did not hide of its own.
  const sc_core::sc_time at = clock_.edge(begin);
  if (at > sc_core::sc_time_stamp()) wait(at - sc_core::sc_time_stamp());

  std::vector<hw::Half> values;
  if (values_) {
    const hw::Half* const own = values_->registers() + exchange.base + first;
    values.assign(own, own + (last - first));
  }
  router.send(exchange, sequence, std::move(values));
  std::uint64_t end = begin;
  for (const RingRouter::Arrival& part : router.receive(exchange, sequence)) {
    if (values_) {
      std::copy(part.values.begin(), part.values.end(),
                values_->registers() + exchange.base + part.first);
    }
    timing_.arrived(exchange.base + part.first, part.elements, part.cycle);
    end = std::max(end, part.cycle);
  }
  if (machine_.ring.sync == Sync::kBlocking) {
    end += machine_.dfx.issue_cycles;  // of the instruction that takes what has come
    timing_.wait(end);
  }
  account(Phase::kSync, end);
  tell(instruction, {begin, end, end});
}

void ComputeCore::tell(const Instruction& instruction, const CoreTiming::Times& times) {
  if (observer) observer({core_, &instruction, times});
  if (!signals_) return;
  const auto unit = static_cast<std::size_t>(unit_of(instruction.op));
  signals_->recorder->hold(signals_->instructions.at(unit), clock_.edge_ps(times.begin),
                           clock_.edge_ps(std::max(times.released, times.begin)),
                           static_cast<std::uint64_t>(instruction.op));
}

void ComputeCore::watch(SignalRecorder& recorder) {
  using Kind = SignalRecorder::Kind;
  const std::string prefix = std::string(name()) + ".";
  timing_.watch(recorder, prefix);
  Signals& signals = signals_.emplace();
  signals.recorder = &recorder;
  signals.phase = recorder.add_signal(prefix + "phase", 4, Kind::kLatest);
  for (std::size_t unit = 0; unit < signals.instructions.size(); ++unit) {
    const std::string unit_name(hw::dfx::name_of(static_cast<Unit>(unit)));
    signals.instructions.at(unit) =
        recorder.add_signal(prefix + unit_name + ".instruction", 6, Kind::kLatest);
  }
}

// A core runs ahead, but one unit may wait where another is ahead of it.
std::uint64_t ComputeCore::settled_ps() const {
  return done() ? Watched::settled_ps() : pass_began_ps_;
}

std::vector<hw::BlockReport> ComputeCore::reports(std::uint64_t cycles) const {
  std::vector<hw::BlockReport> reports;
  for (std::size_t i = 0; i < hw::dfx::kUnits; ++i) {
    const auto unit = static_cast<Unit>(i);
    reports.push_back(timing_.account(unit).report(
        "core" + std::to_string(core_) + "." + std::string(hw::dfx::name_of(unit)), cycles,
        {{"instructions", "", "executed", timing_.instructions(unit)}}));
  }
  return reports;
}

}  // namespace systole::tlm_model::dfx

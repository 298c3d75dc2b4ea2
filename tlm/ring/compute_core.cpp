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
  phases_[static_cast<std::size_t>(phase)] += end - end_;
  end_ = end;
}

void ComputeCore::run() {
  while (true) {
    wait(start_);
    const std::uint64_t now = clock_.cycle_from(sc_core::sc_time_stamp());
    timing_.start(now);
    end_ = now;
    for (const Instruction& instruction : pass_->instructions) {
      if (instruction.op == Opcode::kSync) {
        sync(instruction);
        continue;
      }
      const CoreTiming::Times times = timing_.issue(instruction);
      account(instruction.phase, times.end);
      if (values_) values_->execute(instruction);
      if (observer) observer({core_, &instruction, times});
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
  if (observer) observer({core_, &instruction, {begin, end, end}});
}

std::vector<hw::BlockReport> ComputeCore::reports(std::uint64_t cycles) const {
  std::vector<hw::BlockReport> reports;
  const auto unit = [&](const char* name, Unit which) {
    reports.push_back(timing_.account(which).report(
        "core" + std::to_string(core_) + "." + name, cycles,
        {{"instructions", "", "executed", timing_.instructions(which)}}));
  };
  unit("matrix", Unit::kMatrix);
  unit("vector", Unit::kVector);
  unit("dma", Unit::kDma);
  unit("router", Unit::kRouter);
  return reports;
}

}  // namespace systole::tlm_model::dfx

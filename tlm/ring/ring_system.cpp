#include "tlm/ring/ring_system.h"

#include <cmath>
#include <string>
#include <utility>

#include "tlm/common/time.h"

namespace systole::tlm_model::dfx {

RingSystem::RingSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
                       const std::vector<std::uint32_t>& register_elements,
                       const std::vector<CoreMemory*>& memories, std::vector<HalfEngines> engines,
                       Next next)
    : sc_module(name), machine_(machine), next_(std::move(next)) {
  require_ps_resolution();
  const std::size_t cores = machine.dfx.cores;
  const auto named = [](const char* text, std::size_t i) { return text + std::to_string(i); };
  for (std::size_t i = 0; i < cores; ++i) {
    cores_.push_back(std::make_unique<ComputeCore>(
        named("core", i).c_str(), machine, static_cast<std::uint32_t>(i), register_elements[i],
        memories.empty() ? nullptr : memories[i],
        engines.empty() ? HalfEngines{} : std::move(engines[i])));
  }
  for (std::size_t i = 0; cores > 1 && i < cores; ++i) {
    const auto connect = [&](std::vector<std::unique_ptr<RingLink>>& links, const char* text,
                             RingRouter& to) -> RingLink& {
      links.push_back(std::make_unique<RingLink>(named(text, i).c_str(), machine.ring));
      links.back()->out.bind(to);
      return *links.back();
    };
    RingRouter& own = cores_[i]->router;
    own.right.bind(connect(to_right_, "to_right", cores_[(i + 1) % cores]->router));
    own.left.bind(connect(to_left_, "to_left", cores_[(i + cores - 1) % cores]->router));
  }
  SC_HAS_PROCESS(RingSystem);
  SC_THREAD(host);
}

std::uint64_t RingSystem::link_bytes(std::size_t i) const {
  if (to_right_.empty()) return 0;
  return to_right_[i]->bytes() + to_left_[(i + 1) % to_left_.size()]->bytes();
}

std::vector<hw::BlockReport> RingSystem::reports() const {
  const std::uint64_t cycles = Clock(machine_.core.clock_mhz).cycle_from(sc_core::sc_time_stamp());
  std::vector<hw::BlockReport> all;
  for (const auto& core : cores_) {
    for (hw::BlockReport& report : core->reports(cycles)) all.push_back(std::move(report));
  }
  return all;
}

void RingSystem::host_waits(double ns) {
  const auto ps = static_cast<std::uint64_t>(std::llround(ns * 1000.0));
  host_ps_ += ps;
  wait(from_ps(ps));
}

void RingSystem::host() {
  // Configuration and start, over PCIe.
  host_waits(machine_.pcie.latency_ns);
  ends_.push_back(to_ps(sc_core::sc_time_stamp()));
  while (true) {
    const NextPass next = next_();
    if (next.host_bytes != 0) {
      host_waits(machine_.pcie.latency_ns +
                 static_cast<double>(next.host_bytes) / machine_.pcie.gbyte_per_s);
    }
    if (next.passes.empty()) break;
    for (std::size_t i = 0; i < cores_.size(); ++i) cores_[i]->start(*next.passes[i]);
    for (const auto& core : cores_) {
      while (!core->done()) wait(core->done_event());
    }
    ends_.push_back(to_ps(sc_core::sc_time_stamp()));
  }
  host_waits(machine_.pcie.latency_ns);  // what tells the host that it is done; nothing follows
  done_ = true;
}

}  // namespace systole::tlm_model::dfx

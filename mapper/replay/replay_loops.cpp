#include "mapper/replay/replay_loops.h"

#include <algorithm>

#include "hw/loop/loop_core.h"
#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"

namespace systole::mapper {
namespace {

/// Answers in order, a beat a time.
class OneLatency final : public hw::loop::Memory {
 public:
  OneLatency(std::uint64_t latency, std::uint32_t width, std::uint32_t beat)
      : latency_(latency), width_(width), beat_(beat) {}
  std::uint64_t send(const Request& request) override {
    const std::uint64_t beats = request.write ? 1 : request.bytes / width_;
    const std::uint64_t first = std::max(request.cycle + latency_, next_);
    const std::uint64_t last = first + (beats - 1) * beat_;
    next_ = last + beat_;
    return last;
  }
  [[nodiscard]] std::uint32_t beat_cycles() const override { return beat_; }

 private:
  std::uint64_t latency_, width_, next_ = 0;
  std::uint32_t beat_;
};

std::uint64_t latency_of(const hw::Machine& machine) {
  if (hw::has_fixed_memory(machine)) return machine.memory.latency;
  const double ns = machine.dram.controller_ns + machine.dram.t_rcd_ns + machine.dram.t_cl_ns;
  return machine.bus.request_latency + machine.bus.response_latency +
         static_cast<std::uint64_t>(hw::mesh_trip(machine)) +
         static_cast<std::uint64_t>(ns * machine.core.clock_mhz / 1000.0);
}

}  // namespace

ReplayLoops::ReplayLoops(const hw::Machine& machine)
    : machine_(machine), latency_(latency_of(machine)) {}

std::uint64_t ReplayLoops::cycles(const hw::Program& program, std::size_t& first) {
  const std::size_t begin = first;
  std::vector<std::uint64_t> key;
  for (; first < program.commands.size(); ++first) {
    const hw::Command& command = program.commands[first];
    const auto* const loop = command.as<hw::cmd::Loop>();
    if (loop == nullptr) break;
    if (first != begin && command.issue == hw::Issue::kCall) break;
    const hw::loop::LoopCall call = hw::loop::loop_call(*loop, program, machine_);
    const std::uint64_t page = machine_.tlb.page_bytes;
    for (const std::uint64_t value :
         {std::uint64_t{call.m}, std::uint64_t{call.n}, std::uint64_t{call.k},
          std::uint64_t{call.m_pad}, std::uint64_t{call.n_pad}, std::uint64_t{call.k_pad},
          call.a % page, call.b % page, call.d == 0 ? page : call.d % page,
          call.c == 0 ? page : call.c % page, std::uint64_t{call.a_pitch},
          std::uint64_t{call.b_pitch}, std::uint64_t{call.d_pitch}, std::uint64_t{call.c_pitch},
          std::uint64_t{call.c_bytes}, std::uint64_t{call.accumulate}}) {
      key.push_back(value);
    }
  }
  const auto [known, is_new] = known_.try_emplace(std::move(key), 0);
  if (!is_new) return known->second;
  const bool fixed = hw::has_fixed_memory(machine_);
  OneLatency memory(latency_, machine_.bus.width_bytes,
                    fixed ? machine_.memory.read_beat_cycles : 1);
  hw::loop::LoopCore core(machine_, memory);
  core.begin_call();
  for (std::size_t i = begin; i < first; ++i) {
    core.push(
        hw::loop::loop_call(std::get<hw::cmd::Loop>(program.commands[i].work), program, machine_));
  }
  while (core.busy()) core.step();
  return known->second = core.cycle();
}

}  // namespace systole::mapper

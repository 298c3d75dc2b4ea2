#include "mapper/replay/request_memory.h"

#include "base/round.h"

namespace systole::mapper {

RequestMemory::RequestMemory(const hw::Machine& machine)
    : core_{machine.core.clock_mhz},
      bus_{machine.bus.clock_mhz},
      width_(machine.bus.width_bytes),
      request_latency_(machine.bus.request_latency),
      response_latency_(machine.bus.response_latency),
      request_("cycles"),
      write_data_("cycles"),
      read_data_("cycles"),
      dram_(machine.dram) {
  if (hw::has_fixed_memory(machine)) {
    fixed_.emplace(machine.memory, machine.bus.width_bytes);
  }
}

std::uint64_t RequestMemory::serve(bool write, std::uint64_t address, std::uint64_t bytes,
                                   std::uint64_t issue) {
  const std::uint64_t beats = std::max<std::uint64_t>(ceil_div(bytes, width_), 1);
  std::uint64_t arrived = request_.reserve(bus_.cycle(core_.ps(issue)), 1);
  if (write) arrived = write_data_.reserve(arrived, beats) + beats - 1;
  arrived += request_latency_;
  std::uint64_t finished;
  if (fixed_) {
    const std::uint64_t last = fixed_->accept(arrived, write, bytes).last;
    finished = last - (write ? 0 : fixed_->beats(bytes) - 1);
  } else {
    finished = bus_.cycle(dram_.access(address, bytes, write, bus_.ps(arrived)).end);
  }
  if (!write) finished = read_data_.reserve(finished, beats) + beats - 1;
  return core_.cycle(bus_.ps(finished + response_latency_));
}

void RequestMemory::retire(std::uint64_t cycle) {
  const std::uint64_t now = bus_.cycle(core_.ps(cycle));
  for (hw::Calendar* const channel : {&request_, &write_data_, &read_data_}) channel->retire(now);
}

}  // namespace systole::mapper

#include "mapper/replay/request_memory.h"

#include <limits>

#include "base/round.h"
#include "hw/dma/request_cut.h"
#include "hw/host/core_registers.h"
#include "hw/program/program.h"

namespace systole::mapper {
namespace {

constexpr std::uint64_t kRegister = 8;  ///< bytes

/// What does not fit into memory is said of the mapping that was chosen.
hw::Machine::Dram without_end(hw::Machine::Dram dram) {
  dram.mib = std::numeric_limits<std::uint32_t>::max();
  return dram;
}

}  // namespace

RequestMemory::RequestMemory(const hw::Machine& machine)
    : core_{machine.core.clock_mhz},
      bus_{machine.bus.clock_mhz},
      width_(machine.bus.width_bytes),
      request_latency_(machine.bus.request_latency),
      response_latency_(machine.bus.response_latency),
      request_("cycles"),
      write_data_("cycles"),
      read_data_("cycles"),
      write_response_("cycles"),
      dram_(without_end(machine.dram)) {
  if (hw::has_fixed_memory(machine)) {
    fixed_.emplace(machine.memory, machine.bus.width_bytes);
  }
}

template <typename Target>
std::uint64_t RequestMemory::pass(bool write, std::uint64_t address, std::uint64_t bytes,
                                  std::uint64_t ps, const Target& target) {
  const std::uint64_t beats = blocks_touched(address, bytes, width_);
  std::uint64_t arrived = request_.reserve(bus_.cycle(ps), 1);
  if (write) arrived = write_data_.reserve(arrived, beats) + beats - 1;
  arrived += request_latency_;
  const std::uint64_t finished = bus_.cycle(target(bus_.ps(arrived)));
  const std::uint64_t length = write ? 1 : beats;
  hw::Calendar& channel = write ? write_response_ : read_data_;
  return bus_.ps(channel.reserve(finished, length) + length - 1 + response_latency_);
}

std::uint64_t RequestMemory::access(bool write, std::uint64_t address, std::uint64_t bytes,
                                    std::uint64_t ps) {
  return pass(write, address, bytes, ps, [&](std::uint64_t arrived) {
    if (!fixed_) return dram_.access(address, bytes, write, arrived).end;
    const std::uint64_t last = fixed_->accept(bus_.cycle(arrived), write, address, bytes).last;
    return bus_.ps(last - (write ? 0 : fixed_->beats(address, bytes) - 1));
  });
}

std::uint64_t RequestMemory::serve(bool write, std::uint64_t address, std::uint64_t bytes,
                                   std::uint64_t issue) {
  return core_.cycle(access(write, address, bytes, core_.ps(issue)));
}

std::uint64_t RequestMemory::start(const hw::Machine::Host& host, ReplayRows input) {
  const std::uint64_t between = std::uint64_t{host.mmio_ns} * 1000;
  std::uint64_t answered = 0;
  const auto core = [&](std::uint64_t arrived) {
    return answered = core_.ps(core_.cycle(arrived) + hw::CoreRegisterMap::kAnswerCycles);
  };
  std::uint64_t now = pass(false, hw::kRegistersBase, kRegister, between, core);
  now = pass(true, hw::kRegistersBase, kRegister, now + between, core);
  for (; input.left != 0; --input.left, input.address += input.pitch) {
    hw::kHostLines.for_each(input.address, input.bytes,
                            [&](std::uint64_t at, std::uint64_t length) {
                              now = access(true, input.address + at, length, now);
                            });
  }
  now += between;
  static_cast<void>(pass(true, hw::kRegistersBase, kRegister, now, core));
  return core_.cycle(answered);
}

void RequestMemory::retire(std::uint64_t cycle) {
  const std::uint64_t now = bus_.cycle(core_.ps(cycle));
  for (hw::Calendar* const channel : {&request_, &write_data_, &read_data_, &write_response_}) {
    channel->retire(now);
  }
}

}  // namespace systole::mapper

#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <systemc>
#include <vector>

#include "base/accounting.h"

namespace systole::testbench {

/// What remains of a simulation, whatever the machine.
struct MachineRun {
  std::vector<hw::BlockReport> blocks;
  std::uint64_t kernel_events = 0;  ///< process activations of the simulation kernel
  double wall_seconds = 0.0;        ///< of simulation alone
};

/// Simulates until the host of the machine, a System or a RingSystem, has done its work. Throws
/// std::logic_error if nothing can happen any more before that.
template <typename Machine>
[[nodiscard]] MachineRun run_machine(Machine& machine) {
  const auto begin = std::chrono::steady_clock::now();
  sc_core::sc_start();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (!machine.done()) {
    throw std::logic_error("deadlock: nothing happens after " +
                           sc_core::sc_time_stamp().to_string() + ", and the host is not done");
  }
  return {machine.reports(), sc_core::sc_delta_count(), wall.count()};
}

}  // namespace systole::testbench

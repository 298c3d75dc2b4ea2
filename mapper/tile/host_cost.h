#pragma once

#include <cstdint>

#include "hw/host/host_function.h"
#include "hw/machine/machine.h"

namespace systole::mapper {

/// What a function of the host is expected to take, in cycles of the core.
struct HostCost {
  double compute = 0;  ///< by contract (hw/host/host_cycles.h)
  double wait = 0;     ///< for its lines, on an idle memory without L2 cache
  [[nodiscard]] double total() const { return compute + wait; }
};

/// For m rows of n elements, each of whose rows begins a line.
[[nodiscard]] HostCost host_cost(const hw::HostFunction& function, std::uint64_t m, std::uint64_t n,
                                 const hw::Machine& machine);

}  // namespace systole::mapper

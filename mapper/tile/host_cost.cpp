#include "mapper/tile/host_cost.h"

#include <algorithm>

#include "base/round.h"
#include "hw/dma/request_cut.h"
#include "hw/host/host_cycles.h"
#include "mapper/tile/tiling.h"

namespace systole::mapper {

HostCost host_cost(const hw::HostFunction& function, std::uint64_t m, std::uint64_t n,
                   const hw::Machine& machine) {
  const auto lines = [&](hw::DType type) {
    return static_cast<double>(m * ceil_div(n * hw::bytes_of(type), hw::kHostLineBytes));
  };
  double moved = lines(function.in) + lines(function.out);
  if (hw::operands_of(function.op) > 1) moved += lines(function.tensor);
  const DmaRate rate = dma_rate(machine, 1);
  const double transfer = hw::kHostLineBytes / rate.bytes_per_cycle;
  const double line =
      std::max(transfer, (rate.cycles_per_request + transfer) / machine.host.outstanding);
  const double clocks = static_cast<double>(machine.core.clock_mhz) / machine.host.clock_mhz;
  return {clocks * static_cast<double>(hw::host_cycles(function, m, n, machine.host).total()),
          moved * line};
}

}  // namespace systole::mapper

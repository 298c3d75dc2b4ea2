#include "analysis/roofline.h"

#include <algorithm>
#include <array>

#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"
#include "hw/number/int4.h"
#include "mapper/tile/tiling.h"

namespace systole::analysis {

double Roofline::memory_bytes() const {
  return std::min({dram_bytes, bus_bytes, read_bytes, write_bytes});
}

Roofline roofline_of(const hw::Machine& machine) {
  const double core = machine.core.clock_mhz;
  const auto window = [&](std::uint32_t outstanding) {
    return machine.dma.request_bytes / mapper::dma_rate(machine, outstanding).cycles_per_request;
  };
  Roofline roofline;
  roofline.macs = static_cast<double>(machine.array.rows) * machine.array.cols;
  if (machine.array.split != hw::ArraySplit::kNone) {
    roofline.int4_macs = hw::Int4Operands{false, true}.macs() * roofline.macs;
  }
  if (machine.array.split == hw::ArraySplit::kBoth) {
    roofline.int4_int4_macs = hw::Int4Operands{true, true}.macs() * roofline.macs;
  }
  roofline.dram_bytes = hw::memory_rate(machine) / core;
  roofline.bus_bytes = hw::port_rate(machine) * machine.bus.clock_mhz / core;
  roofline.read_bytes = window(machine.dma.outstanding_reads);
  roofline.write_bytes = window(machine.dma.outstanding_writes);
  roofline.elements = machine.result_lanes();
  return roofline;
}

std::string_view name_of(Resource resource) {
  constexpr std::array<std::string_view, 4> kNames = {"array", "memory", "post-op", "host"};
  return kNames.at(static_cast<std::size_t>(resource));
}

double Bound::cycles() const { return std::max({array, memory, postop, host}); }

Resource Bound::resource() const {
  if (host > std::max({array, memory, postop})) return Resource::kHost;
  if (array >= memory && array >= postop) return Resource::kArray;
  return memory >= postop ? Resource::kMemory : Resource::kPostop;
}

Bound bound_of(const OperatorCost& cost, const Roofline& roofline) {
  return {cost.macs / roofline.macs, cost.bytes / roofline.memory_bytes(),
          cost.elements / roofline.elements, 0};
}

}  // namespace systole::analysis

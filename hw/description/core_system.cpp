#include "hw/description/core_system.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "hw/description/machine_keys.h"
#include "hw/host/core_registers.h"
#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"
#include "hw/ring/ring_map.h"

namespace systole::hw {
namespace {

constexpr std::array<std::string_view, 13> kCoreSections = {
    "core",      "array", "scratchpad", "accumulator", "postop", "preop",  "datapath",
    "attention", "dma",   "unroller",   "tlb",         "mapper", "backend"};

constexpr std::array<std::string_view, 8> kRingSections = {"core", "dfx",  "matrix", "vector",
                                                           "hbm",  "ring", "pcie",   "backend"};

constexpr std::array<std::string_view, 7> kBlockNames = {"bus", "dram",   "l2",    "host",
                                                         "noc", "memory", "system"};

/// Where a core is does not change what it runs.
constexpr std::string_view kNodeKey = "noc.node";

std::uint64_t memory_bytes(const Machine& machine) { return std::uint64_t{machine.dram.mib} << 20; }

std::string hexadecimal(std::uint64_t address) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(address));
  return text.data();
}

/// Of a ring; in a window from `base` on its names begin with `prefix`.
void add_ring(const Machine& machine, std::uint64_t base, const std::string& prefix,
              std::vector<AddressRange>& map) {
  for (std::uint32_t i = 0; i < machine.dfx.cores; ++i) {
    const dfx::CoreAddresses at = dfx::addresses_of(machine, i);
    const std::string name = prefix + "core" + std::to_string(i);
    map.push_back({base + at.hbm, dfx::hbm_bytes(machine), name, "hbm"});
    map.push_back({base + at.ddr, dfx::ddr_bytes(machine), name, "ddr"});
    map.push_back({base + at.registers, CoreRegisterMap::kRegisterBytes, name, "registers"});
    map.push_back({base + at.vectors, dfx::vector_bytes(machine), name, "register file"});
  }
}

}  // namespace

bool is_core_section(std::string_view section) {
  return std::find(kCoreSections.begin(), kCoreSections.end(), section) != kCoreSections.end();
}

bool is_ring_section(std::string_view section) {
  return std::find(kRingSections.begin(), kRingSections.end(), section) != kRingSections.end();
}

const CoreSite* ring_of(const CoreSystem& system) {
  const auto found = std::find_if(system.cores.begin(), system.cores.end(), is_ring);
  return found == system.cores.end() ? nullptr : &*found;
}

CoreSystem tiles_of(const CoreSystem& system) {
  CoreSystem tiles = system;
  tiles.cores.erase(std::remove_if(tiles.cores.begin(), tiles.cores.end(), is_ring),
                    tiles.cores.end());
  tiles.reserved = memory_bytes(system.machine) - memory_of_tiles(system);
  return tiles;
}

std::vector<std::uint64_t> ring_ddr(const CoreSystem& system, const CoreSite& ring) {
  const std::uint64_t each = memory_bytes(ring.machine);
  std::vector<std::uint64_t> bases(ring.machine.dfx.cores);
  std::uint64_t at = memory_bytes(system.machine);
  for (std::size_t i = bases.size(); i-- > 0;) bases[i] = kDramBase + (at -= each);
  return bases;
}

std::uint64_t memory_of_tiles(const CoreSystem& system) {
  const CoreSite* const ring = ring_of(system);
  return ring == nullptr ? memory_bytes(system.machine) - system.reserved
                         : ring_ddr(system, *ring).front();
}

std::string ring_problem(const CoreSystem& system) {
  const CoreSite* const ring = ring_of(system);
  if (ring == nullptr) return {};
  if (ring->machine.dfx.clusters != 1) {
    return "found dfx.clusters = " + std::to_string(ring->machine.dfx.clusters) +
           ", expected 1 beside tile cores";
  }
  const std::uint64_t all = system.machine.dram.mib;
  const std::uint64_t taken = std::uint64_t{ring->machine.dfx.cores} * ring->machine.dram.mib;
  if (taken >= all) {
    return "found " + std::to_string(ring->machine.dfx.cores) + " cores with " +
           std::to_string(ring->machine.dram.mib) + " MiB of DDR each, expected less than the " +
           std::to_string(all) + " MiB of dram.mib";
  }
  return {};
}

bool is_core_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && name.size() <= 32 && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

bool is_block_name(std::string_view name) {
  return std::find(kBlockNames.begin(), kBlockNames.end(), name) != kBlockNames.end();
}

std::uint64_t default_registers(std::size_t index) {
  return kRegistersBase + index * kRegisterStride;
}

Machine mapped_machine(const CoreSystem& system, std::size_t core) {
  Machine machine = system.cores.at(core).machine;
  const auto sharers = static_cast<std::uint32_t>(
      std::count_if(system.cores.begin(), system.cores.end(),
                    [](const CoreSite& site) { return !is_ring(site); }));
  if (sharers < 2) return machine;
  machine.memory.read_beat_cycles *= sharers;
  const double bus = port_rate(machine) * machine.bus.clock_mhz;
  const double share = std::min(1.0, bus / memory_rate(system.machine)) / sharers;
  const auto transfers = static_cast<std::uint32_t>(machine.dram.mega_transfers * share);
  machine.dram.mega_transfers = std::max(transfers, 1U);
  return machine;
}

CoreSystem equal_cores(const Machine& machine, std::size_t count) {
  CoreSystem system{machine, {}, 0};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = count == 1 ? "core" : "core" + std::to_string(i);
    system.cores.push_back({name, machine, default_registers(i), 0});
  }
  place_cores(system);
  return system;
}

std::vector<AddressRange> address_map(const CoreSystem& system) {
  std::vector<AddressRange> map;
  if (system.machine.dfx.cores != 0) {
    add_ring(system.machine, 0, "", map);
  } else {
    const char* const memory = system.machine.l2.kib != 0 ? "l2" : "dram";
    map.push_back({kDramBase, memory_bytes(system.machine), memory, ""});
    for (const CoreSite& core : system.cores) {
      if (is_ring(core)) {
        add_ring(core.machine, core.registers, core.name + ".", map);
      } else {
        map.push_back({core.registers, CoreRegisterMap::kRegisterBytes, core.name, "registers"});
      }
    }
    if (system.cores.empty())
      map.push_back({kRegistersBase, CoreRegisterMap::kRegisterBytes, "core", "registers"});
  }
  std::sort(map.begin(), map.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.base < b.base; });
  return map;
}

std::string address_problem(const CoreSystem& system, std::size_t index) {
  if (is_ring(system.cores[index])) return {};
  const std::uint64_t base = system.cores[index].registers;
  const auto found = [&](const std::string& what) {
    return "found " + hexadecimal(base) + ", " + what;
  };
  if (base % sizeof(std::uint64_t) != 0) return found("expected a multiple of 8");
  if (base < kDramBase + memory_bytes(system.machine)) {
    return found("which overlaps the DRAM, expected an address from " +
                 hexadecimal(kDramBase + memory_bytes(system.machine)) + " on");
  }
  if (base + CoreRegisterMap::kRegisterBytes > dfx::kRingWindow) {
    return found("expected an address below that of rings, " + hexadecimal(dfx::kRingWindow));
  }
  for (std::size_t i = 0; i < index; ++i) {
    if (is_ring(system.cores[i])) continue;
    const std::uint64_t other = system.cores[i].registers;
    if (std::max(base, other) - std::min(base, other) >= CoreRegisterMap::kRegisterBytes) continue;
    return found("which overlaps the registers of " + system.cores[i].name + " at " +
                 hexadecimal(other) + ", expected " +
                 std::to_string(CoreRegisterMap::kRegisterBytes) + " bytes of its own");
  }
  return {};
}

void place_cores(CoreSystem& system) {
  if (!has_mesh(system.machine)) return;
  std::uint32_t next = system.machine.noc.node;
  for (CoreSite& core : system.cores) {
    if (!is_ring(core)) core.machine.noc.node = core.node.value_or(next);
    ++next;
  }
}

std::string mesh_problem(const CoreSystem& system) {
  if (!has_mesh(system.machine)) {
    const auto placed = std::find_if(system.cores.begin(), system.cores.end(),
                                     [](const CoreSite& core) { return core.node.has_value(); });
    if (placed == system.cores.end()) return {};
    return "found node = " + std::to_string(*placed->node) + " of " + placed->name +
           " and noc.columns = 0, expected a mesh";
  }
  if (ring_of(system) != nullptr) {
    return "found noc.columns = " + std::to_string(system.machine.noc.columns) +
           ", expected 0 beside a ring";
  }
  std::vector<std::uint32_t> nodes;
  for (const CoreSite& core : system.cores) nodes.push_back(core.machine.noc.node);
  return node_problem(system.machine.noc, nodes);
}

bool same_keys(const Machine& a, const Machine& b) {
  const std::vector<MachineKey>& keys = machine_keys();
  return std::all_of(keys.begin(), keys.end(), [&](const MachineKey& key) {
    return section_of(key.path).empty() || key.path == kNodeKey || key.get(a) == key.get(b);
  });
}

}  // namespace systole::hw

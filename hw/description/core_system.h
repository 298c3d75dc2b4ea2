#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"

/// Several cores on one bus and one memory: what the `[[core]]` tables of a machine file describe.
namespace systole::hw {

/// Cores of one system: what the tables of addresses and reports are made for.
inline constexpr std::size_t kMaxCores = 64;

/// Where the registers of cores are that name no address, from kRegistersBase on.
inline constexpr std::uint64_t kAllRegisterBytes = kMaxCores * kRegisterStride;

struct CoreSite {
  std::string name;
  /// Its own keys, and those that all cores share. Of a ring of FP16 cores, dram.mib is that of the
  /// DDR of each of its cores, a part of the system's memory.
  Machine machine;
  std::uint64_t registers = 0;  ///< byte address on the bus; of a ring: its window (ring_map.h)
  std::uint32_t link_ns = 0;    ///< of a request, and of its answer, between its ports and the bus
  std::optional<std::uint32_t> node = {};  ///< of a mesh, if its table has one
};

struct CoreSystem {
  Machine machine;              ///< the keys outside the tables
  std::vector<CoreSite> cores;  ///< empty: the machine is one core, described by its keys
  std::uint64_t reserved = 0;   ///< bytes at the end of memory that are of something else
};

/// Whether it is a ring of FP16 cores, which generates text.
[[nodiscard]] inline bool is_ring(const CoreSite& site) { return site.machine.dfx.cores != 0; }
/// The ring of a system; null: it has none. There is at most one.
[[nodiscard]] const CoreSite* ring_of(const CoreSystem& system);
/// The system without its ring, whose memory is reserved.
[[nodiscard]] CoreSystem tiles_of(const CoreSystem& system);
/// Where the DDR of each core of a ring begins in the system's memory: at its end, one after the
/// other.
[[nodiscard]] std::vector<std::uint64_t> ring_ddr(const CoreSystem& system, const CoreSite& ring);
/// Bytes of the system's memory before that.
[[nodiscard]] std::uint64_t memory_of_tiles(const CoreSystem& system);
/// What keeps the ring of a system from sharing its memory. Empty: nothing.
[[nodiscard]] std::string ring_problem(const CoreSystem& system);

/// Whether a core may have its own value for the keys of this section of a machine file; the
/// others (bus, DRAM, host, ...) belong to the system.
[[nodiscard]] bool is_core_section(std::string_view section);

/// Whether a ring may: those that a ring and a tile core both have are in both.
[[nodiscard]] bool is_ring_section(std::string_view section);

/// Whether a core may have this name: letters, digits and '_', a letter first, up to 32.
[[nodiscard]] bool is_core_name(std::string_view name);
/// Whether another block of a system has this name in reports and waveforms.
[[nodiscard]] bool is_block_name(std::string_view name);

/// The machine that a core's programs are mapped for: what it can count on while all cores move
/// data. Of the memory, or of the bus where that is slower, it has an equal share.
[[nodiscard]] Machine mapped_machine(const CoreSystem& system, std::size_t core);

/// `count` cores "core0", "core1", ... like that of `machine`, 1 to kMaxCores; one alone is "core".
[[nodiscard]] CoreSystem equal_cores(const Machine& machine, std::size_t count);

/// Where the registers of core `index` are unless its table says otherwise.
[[nodiscard]] std::uint64_t default_registers(std::size_t index);

/// A range of the bus and who answers it.
struct AddressRange {
  std::uint64_t base = 0, bytes = 0;
  std::string target;  ///< "dram", "l2" (before the DRAM), or a core's name
  std::string part;    ///< of a core: "registers", "hbm", "ddr", "register file"
};
/// In the order of their addresses: memory, then the registers of each core. Of a machine with a
/// ring of cores, their memories, registers and register files.
[[nodiscard]] std::vector<AddressRange> address_map(const CoreSystem& system);

/// What is wrong with the addresses of core `index`: its registers overlap memory or those of a
/// core before it, or pass the end of the address space. Empty: nothing.
[[nodiscard]] std::string address_problem(const CoreSystem& system, std::size_t index);

/// Puts each tile core of a system with a mesh at its node, noc.node of its machine: that of its
/// table, else as many after noc.node of the system as it has cores before it.
void place_cores(CoreSystem& system);
/// What is wrong with the nodes of cores after place_cores(), or with a mesh beside a ring. Empty:
/// nothing.
[[nodiscard]] std::string mesh_problem(const CoreSystem& system);

/// Whether both machines run the same program: all their keys but the name and noc.node are equal.
/// They take the same cycles but for the ways to memory on a mesh.
[[nodiscard]] bool same_keys(const Machine& a, const Machine& b);

}  // namespace systole::hw

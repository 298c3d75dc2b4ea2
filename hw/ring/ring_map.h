#pragma once

#include <cstdint>

#include "base/round.h"
#include "base/units.h"
#include "hw/machine/machine.h"
#include "hw/number/half.h"
#include "hw/program/program.h"

/// Where the memories and registers of a ring's cores are for whoever is on its bus. A core sees
/// its memories through separate ports, from address 0 on.
namespace systole::hw::dfx {

/// Byte addresses of what one core has.
struct CoreAddresses {
  std::uint64_t hbm, ddr;   ///< memories
  std::uint64_t registers;  ///< those that start it
  std::uint64_t vectors;    ///< its register file
};

[[nodiscard]] inline std::uint64_t hbm_bytes(const Machine& machine) {
  return std::uint64_t{machine.hbm.mib} * kMib;
}
[[nodiscard]] inline std::uint64_t ddr_bytes(const Machine& machine) {
  return std::uint64_t{machine.dram.mib} * kMib;
}
[[nodiscard]] inline std::uint64_t vector_bytes(const Machine& machine) {
  return std::uint64_t{machine.vector.registers} * machine.matrix.depth * kHalfBytes;
}

/// Of core `core`: memories one after the other, then the registers of all, then their register
/// files.
[[nodiscard]] inline CoreAddresses addresses_of(const Machine& machine, std::uint32_t core) {
  const std::uint64_t card = hbm_bytes(machine) + ddr_bytes(machine);
  const std::uint64_t registers = round_up(machine.dfx.cores * card, kRegistersBase);
  const std::uint64_t files = registers + machine.dfx.cores * kRegisterStride;
  return {core * card, core * card + hbm_bytes(machine), registers + core * kRegisterStride,
          files + core * vector_bytes(machine)};
}

/// A ring in a system of other cores has all of these addresses in a window of the system's bus.
inline constexpr std::uint64_t kRingWindow = std::uint64_t{1} << 44;
/// Bytes of the window.
[[nodiscard]] inline std::uint64_t window_bytes(const Machine& machine) {
  return addresses_of(machine, machine.dfx.cores - 1).vectors + vector_bytes(machine);
}

}  // namespace systole::hw::dfx

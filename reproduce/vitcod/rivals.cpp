#include "reproduce/vitcod/rivals.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "hw/description/machine_file.h"

namespace systole::testbench {
namespace {

std::uint32_t macs_of(const hw::Machine& machine) {
  return machine.array.rows * machine.array.cols;
}

void require_macs(const hw::Machine& machine, std::size_t least, const char* of) {
  if (macs_of(machine) >= least) return;
  throw hw::InputError("array.rows, array.cols: " + std::to_string(macs_of(machine)) +
                       " MACs, expected at least " + std::to_string(least) + " for " + of +
                       " beside it");
}

}  // namespace

Sanger published_sanger() { return sanger_of(hw::find_machine("sanger")); }
Spatten published_spatten() { return spatten_of(hw::find_machine("spatten")); }

Sanger equal_sanger(const hw::Machine& machine) {
  Sanger sanger;
  require_macs(machine, sanger.array.row_pes, "Sanger's array");
  sanger.array.rows = macs_of(machine) / sanger.array.row_pes;
  sanger.array.own_predictor = false;
  sanger.stream = {peak_bytes_per_cycle(machine), 1.0};
  sanger.clock_mhz = machine.core.clock_mhz;
  return sanger;
}

Spatten equal_spatten(const hw::Machine& machine, std::size_t dim) {
  require_macs(machine, 2 * dim, "SpAtten's arrays");
  Spatten spatten;
  spatten.array.key_macs = spatten.array.value_macs = macs_of(machine) / 2;
  spatten.stream = {peak_bytes_per_cycle(machine), 1.0};
  spatten.clock_mhz = machine.core.clock_mhz;
  return spatten;
}

double peak_bytes_per_cycle(const hw::Machine& machine) {
  const double bus = static_cast<double>(machine.bus.width_bytes) * machine.bus.clock_mhz;
  const double dram = static_cast<double>(machine.dram.bus_bytes) * machine.dram.channels *
                      machine.dram.mega_transfers;
  return std::min(bus, dram) / machine.core.clock_mhz;
}

}  // namespace systole::testbench

#include "reproduce/vitcod/rivals.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "hw/energy.h"

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

Sanger published_sanger() { return {{}, {128.0, 2.0}, 1000.0}; }
Spatten published_spatten() { return {{}, {512.0, 1.5}, 1000.0}; }

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

hw::dynamic::SangerCycles sanger_cycles(const model::AttentionMask& mask, std::size_t dim,
                                        const Sanger& sanger) {
  std::vector<hw::SparseHead> heads;
  for (std::size_t layer = 0; layer < mask.shape().layers; ++layer) {
    for (std::size_t head = 0; head < mask.shape().heads; ++head) {
      heads.push_back(mask.head(layer, head));
    }
  }
  return hw::dynamic::run_sanger(heads, dim, sanger.array, sanger.stream);
}

double sanger_joules(const hw::dynamic::SangerCycles& run, const hw::Machine& machine) {
  hw::EnergyEvents events;
  events.macs = run.products + run.predictions / 4;
  events.postop_elements = run.kept;
  events.scratchpad_bytes = static_cast<std::uint64_t>(run.buffer_bytes);
  events.bus_bytes = events.dram_bytes = static_cast<std::uint64_t>(run.moved_bytes);
  events.seconds = static_cast<double>(run.total) / (machine.core.clock_mhz * 1e6);
  return hw::energy_of(events, machine).total();
}

hw::dynamic::AttentionProbabilities uniform_attention(const model::AttentionMask& mask) {
  const model::AttentionShape& shape = mask.shape();
  hw::dynamic::AttentionProbabilities network{shape.layers, shape.heads, shape.keys, {}, {}};
  network.attention.resize(shape.cells());
  for (std::size_t row = 0; row < shape.cells(); row += shape.keys) {
    std::size_t kept = 0;
    for (std::size_t key = 0; key < shape.keys; ++key) kept += mask.kept(row + key) ? 1 : 0;
    for (std::size_t key = 0; key < shape.keys; ++key) {
      if (mask.kept(row + key)) network.attention[row + key] = 1.0 / static_cast<double>(kept);
    }
  }
  return network;
}

hw::dynamic::SpattenSchedule values_alone(const hw::dynamic::AttentionProbabilities& network,
                                          double sparsity) {
  return {std::vector<std::size_t>(network.layers, network.tokens),
          std::vector<std::size_t>(network.layers, network.heads),
          std::max(1.0 - sparsity, 0.5 / static_cast<double>(network.tokens))};
}

hw::dynamic::SpattenSchedule tokens_alone(const hw::dynamic::AttentionProbabilities& network,
                                          double sparsity) {
  hw::dynamic::SpattenSchedule schedule = values_alone(network, 0.0);
  const auto tokens = static_cast<double>(network.tokens);
  const double others = static_cast<double>(network.layers) - 1.0;
  if (others == 0.0) return schedule;
  const double left = (1.0 - sparsity) * (others + 1.0) - 1.0;  // of the cells of one layer
  const double share = std::sqrt(std::max(0.0, left / others));
  const double kept = std::max(1.0, std::round(share * tokens));
  std::fill(schedule.tokens.begin() + 1, schedule.tokens.end(), static_cast<std::size_t>(kept));
  return schedule;
}

}  // namespace systole::testbench

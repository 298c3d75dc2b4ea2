#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "reproduce/vitcod/vitcod.h"

namespace systole::testbench {
namespace {

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

/// Fillings of the whole array that hold the head's kept cells.
std::uint64_t passes_of(const model::AttentionMask& mask, std::size_t layer, std::size_t head,
                        std::uint64_t rows) {
  const model::AttentionShape& shape = mask.shape();
  std::uint64_t passes = 0;
  for (std::size_t first = 0; first < shape.keys; first += kKeysPerTile) {
    const std::size_t end = std::min(shape.keys, first + kKeysPerTile);
    std::uint64_t filled = 0;
    for (std::size_t query = 0; query < shape.queries; ++query) {
      std::uint64_t kept = 0;
      for (std::size_t key = first; key < end; ++key) {
        kept += mask.kept(layer, head, query, key) ? 1 : 0;
      }
      filled += ceil_div(kept, kPesPerRow);
    }
    passes += ceil_div(filled, rows);
  }
  return passes;
}

}  // namespace

std::uint64_t ScoreStationaryCycles::shared_macs() const {
  return std::max(memory, prediction + scores + context);
}

std::uint64_t ScoreStationaryCycles::own_predictor() const { return std::max(memory, overlapped); }

ScoreStationaryCycles score_stationary_cycles(const model::AttentionMask& mask, std::size_t dim,
                                              const hw::Machine& machine) {
  const std::uint64_t macs = std::uint64_t{machine.array.rows} * machine.array.cols;
  const std::uint64_t rows = macs / kPesPerRow;
  if (rows == 0) {
    throw hw::InputError("array.rows, array.cols: " + std::to_string(macs) +
                         " MACs, expected at least " + std::to_string(kPesPerRow) +
                         " for a score-stationary array beside it");
  }
  const model::AttentionShape& shape = mask.shape();
  ScoreStationaryCycles cycles;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::uint64_t prediction = ceil_div(shape.head_cells() * dim, macs);
      const std::uint64_t phase = passes_of(mask, layer, head, rows) * dim;
      cycles.prediction += prediction;
      cycles.scores += phase;
      cycles.context += phase;
      cycles.overlapped += std::max(prediction, 2 * phase);
    }
  }
  const std::uint64_t heads = shape.layers * shape.heads;
  const auto bytes = static_cast<double>(heads * 2 * (shape.queries + shape.keys) * dim);
  cycles.memory = static_cast<std::uint64_t>(std::ceil(bytes / peak_bytes_per_cycle(machine)));
  return cycles;
}

double peak_bytes_per_cycle(const hw::Machine& machine) {
  const double bus = static_cast<double>(machine.bus.width_bytes) * machine.bus.clock_mhz;
  const double dram = static_cast<double>(machine.dram.bus_bytes) * machine.dram.channels *
                      machine.dram.mega_transfers;
  return std::min(bus, dram) / machine.core.clock_mhz;
}

}  // namespace systole::testbench

#include "reproduce/study/mapspace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "analysis/roofline.h"
#include "base/error.h"
#include "base/units.h"
#include "hw/energy.h"

namespace systole::analysis {
namespace {

/// Of 1000 drawn mappings, at least this many should be valid.
constexpr std::uint64_t kLeastValidPerMille = 1;
constexpr std::uint64_t kAccumulatorSumBytes = 4;

struct Cut {
  std::uint64_t tile = 1;  ///< extent of a tile
  std::uint64_t fold = 1;  ///< of it, side by side on PEs
};

/// All ways to cut `extent` without rest, as many as possible of `pes` side by side.
std::vector<Cut> cuts_of(std::uint64_t extent, std::uint64_t pes) {
  std::vector<Cut> cuts;
  for (std::uint64_t tile = 1; tile <= extent; ++tile) {
    if (extent % tile != 0) continue;
    std::uint64_t fold = std::min(tile, pes);
    while (tile % fold != 0) --fold;
    cuts.push_back({tile, fold});
  }
  return cuts;
}

constexpr std::array<std::array<Dim, kDims>, 6> kOrders = {{{Dim::kM, Dim::kN, Dim::kK},
                                                            {Dim::kM, Dim::kK, Dim::kN},
                                                            {Dim::kN, Dim::kM, Dim::kK},
                                                            {Dim::kN, Dim::kK, Dim::kM},
                                                            {Dim::kK, Dim::kM, Dim::kN},
                                                            {Dim::kK, Dim::kN, Dim::kM}}};

class Sampler {
 public:
  Sampler(const ProductShape& shape, const hw::Machine& machine, std::uint64_t seed)
      : machine_(machine),
        size_{shape.m, shape.n, shape.k},
        cuts_{cuts_of(shape.m, 1), cuts_of(shape.n, machine.array.cols),
              cuts_of(shape.k, machine.array.rows)},
        memory_bytes_(roofline_of(machine).memory_bytes()),
        random_(seed) {}

  /// A mapping, valid or not.
  void draw() {
    for (std::size_t d = 0; d < kDims; ++d) cut_[d] = cuts_[d][below(cuts_[d].size())];
    order_ = {kOrders[below(kOrders.size())], kOrders[below(kOrders.size())]};
  }
  [[nodiscard]] bool is_valid() const {
    const std::uint64_t m = cut_[0].tile, n = cut_[1].tile, k = cut_[2].tile;
    return (m + n) * k <= machine_.scratchpad.kib * hw::kKib &&
           kAccumulatorSumBytes * m * n <= machine_.accumulator.kib * hw::kKib;
  }
  [[nodiscard]] double energy_delay() const {
    const std::array<OperandAccesses, kOperands> accesses = count_accesses(nest());
    const OperandAccesses &a = accesses[0], &b = accesses[1], &c = accesses[2];
    const std::uint64_t results = size_[0] * size_[1];
    const std::uint64_t spilled = 2 * (c.dram_tiles - results);  // out, and in again
    hw::EnergyEvents events;
    events.macs = size_[0] * size_[1] * size_[2];
    events.scratchpad_bytes = a.buffer + b.buffer + a.dram_tiles + b.dram_tiles;
    events.accumulator_bytes = kAccumulatorSumBytes * (2 * c.buffer + spilled);
    events.dram_bytes = a.dram_tiles + b.dram_tiles + results + spilled;
    const std::uint64_t pes = cut_[1].fold * cut_[2].fold;
    const double cycles =
        std::max({static_cast<double>(events.macs / pes), words(a.buffer, machine_.array.rows),
                  words(b.buffer, machine_.array.cols), words(c.buffer, machine_.array.cols),
                  static_cast<double>(events.dram_bytes) / memory_bytes_});
    return hw::energy_of(events, machine_).total() * cycles / (machine_.core.clock_mhz * 1e6);
  }

 private:
  /// The same on any host, which a standard distribution is not.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  static double words(std::uint64_t elements, std::uint32_t width) {
    return static_cast<double>(elements) / width;
  }
  [[nodiscard]] LoopNest nest() const {
    LoopNest nest;
    nest.size = size_;
    nest.held = {false, true, false};
    nest.loops.reserve(2 * kDims + 2);
    for (const Dim dim : order_[0]) {
      nest.loops.push_back({dim, cut_[static_cast<std::size_t>(dim)].tile, Level::kDram});
    }
    for (const Dim dim : order_[1]) {
      nest.loops.push_back({dim, cut_[static_cast<std::size_t>(dim)].fold, Level::kBuffer});
    }
    nest.loops.push_back({Dim::kK, 1, Level::kSpatial});
    nest.loops.push_back({Dim::kN, 1, Level::kSpatial});
    return nest;
  }

  const hw::Machine& machine_;
  const std::array<std::uint64_t, kDims> size_;
  const std::array<std::vector<Cut>, kDims> cuts_;
  const double memory_bytes_;
  std::mt19937_64 random_;
  std::array<Cut, kDims> cut_;
  std::array<std::array<Dim, kDims>, 2> order_{};
};

}  // namespace

MapspaceStatistics sample_mapspace(const ProductShape& shape, const hw::Machine& machine,
                                   std::uint64_t mappings, std::uint64_t seed) {
  Sampler sampler(shape, machine, seed);
  MapspaceStatistics statistics;
  std::vector<double> costs;
  costs.reserve(mappings);
  while (costs.size() < mappings) {
    ++statistics.drawn;
    sampler.draw();
    if (sampler.is_valid()) costs.push_back(sampler.energy_delay());
    if (statistics.drawn % 1'000'000 == 0 &&
        costs.size() < statistics.drawn / 1000 * kLeastValidPerMille) {
      throw hw::InputError(
          "scratchpad.kib, accumulator.kib: hardly any mapping of the product fits");
    }
  }
  std::sort(costs.begin(), costs.end());
  statistics.mappings = mappings;
  statistics.best = costs.front();
  statistics.tenth_percentile = costs[(costs.size() - 1) / 10] / costs.front();
  const auto three = std::lower_bound(costs.begin(), costs.end(), 3 * costs.front());
  statistics.below_three =
      static_cast<double>(three - costs.begin()) / static_cast<double>(costs.size());
  statistics.decades = std::log10(costs.back() / costs.front());
  return statistics;
}

const std::vector<MapspaceOperator>& survey_mapspace_operators() {
  static const std::vector<MapspaceOperator> operators = {
      {"BERT MHA projection", {512, 768, 768}},
      {"BERT FFN", {512, 3072, 768}},
      {"3x3/512 convolution", {49, 512, 4608}},
      {"1x1/2048 convolution", {49, 2048, 512}}};
  return operators;
}

}  // namespace systole::analysis

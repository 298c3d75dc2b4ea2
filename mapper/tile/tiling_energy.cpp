#include "mapper/tile/tiling_energy.h"

#include <algorithm>
#include <utility>

#include "base/round.h"
#include "hw/array/accumulator.h"
#include "hw/array/array.h"
#include "hw/energy.h"
#include "hw/noc/mesh_nodes.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program.h"

namespace systole::mapper {
namespace {

constexpr std::uint64_t kBytesPerSum = 4;

/// Rows of sums that the array reads and writes for a matmul, a port access each.
std::uint64_t sum_rows(const hw::Machine::Array& array, std::uint64_t m, std::uint64_t n,
                       std::uint64_t k, bool accumulate) {
  const std::uint64_t folds = hw::array_cycles(array, m, n, k, true).folds;
  if (array.dataflow == hw::Dataflow::kOutputStationary) {
    return folds * std::min<std::uint64_t>(array.rows, m) * hw::accumulator_accesses(accumulate);
  }
  const std::uint64_t first = ceil_div(n, array.cols) * m;
  return first * hw::accumulator_accesses(accumulate) +
         (folds * m - first) * hw::accumulator_accesses(true);
}

void add_matmuls(const hw::Machine::Array& array, const TilingProblem& problem, const Tiling& t,
                 hw::EnergyEvents& events) {
  const auto add = [&](std::uint64_t m, std::uint64_t n, std::uint64_t k, bool accumulate,
                       std::uint64_t times) {
    if (times == 0) return;
    const hw::ArrayReads reads = hw::array_reads(array, m, n, k, problem.int4);
    events.scratchpad_bytes += times * (reads.a * array.rows + reads.b * array.cols);
    events.accumulator_bytes +=
        times * sum_rows(array, m, n, hw::array_steps(k, problem.int4), accumulate) * array.cols *
        kBytesPerSum;
  };
  const std::uint64_t ms = ceil_div(problem.m, t.m) - 1, ks = ceil_div(problem.k, t.k) - 1;
  const std::uint64_t m_rest = problem.m - ms * t.m, k_rest = problem.k - ks * t.k;
  // A section is cut by itself.
  const std::uint64_t sections = problem.section == 0 ? 1 : problem.n / problem.section;
  const std::uint64_t cols = problem.n / sections;
  const std::uint64_t ns = ceil_div(cols, t.n) - 1, n_rest = cols - ns * t.n;
  for (const auto& [m, m_times] : {std::pair{std::uint64_t{t.m}, ms}, {m_rest, std::uint64_t{1}}}) {
    for (const auto& [n, n_times] :
         {std::pair{std::uint64_t{t.n}, ns * sections}, {n_rest, sections}}) {
      const std::uint64_t tiles = m_times * n_times;
      if (ks == 0) {
        add(m, n, k_rest, false, tiles);
      } else {
        add(m, n, t.k, false, tiles);
        add(m, n, t.k, true, tiles * (ks - 1));
        add(m, n, k_rest, true, tiles);
      }
    }
  }
}

}  // namespace

double tiling_energy(const hw::Machine& machine, const TilingProblem& problem, const Tiling& t) {
  const std::uint64_t m_tiles = ceil_div(problem.m, t.m), c_tiles = ceil_div(problem.n, t.c_cols);
  const std::uint64_t results = std::uint64_t{problem.m} * problem.n;
  const std::uint64_t out = problem.m * problem.result_bytes(problem.n);
  const std::uint64_t loaded = results * problem.in_bytes;
  hw::EnergyEvents events;
  events.macs = results * problem.k;
  if (problem.int4.b) events.int4_macs = events.macs;
  if (problem.int4.a) events.int4_int4_macs = events.macs;
  events.postop_elements = results * problem.stages + t.staged;
  events.scratchpad_bytes = t.load_bytes + (problem.out_on_chip ? out : 0) +
                            kBytesPerSum * problem.parameter_words * problem.n * m_tiles;
  // Sums leave in vectors of post-op lanes.
  events.accumulator_bytes = problem.postop_passes * problem.m * c_tiles *
                             round_up(std::min(t.c_cols, problem.n), machine.result_lanes()) *
                             kBytesPerSum;
  if (problem.b_packed()) {
    // The bytes that are written are those of the expanded weights; each counts as an element of a
    // stage, as in the load unit.
    const std::uint64_t expanded = times_loaded(std::uint64_t{problem.k} * problem.n, t.b_loads);
    events.scratchpad_bytes +=
        expanded -
        times_loaded(hw::packed_bytes(problem.b_format, problem.k, problem.n), t.b_loads);
    events.postop_elements += expanded;
  }
  std::uint64_t commands = 2 * m_tiles * c_tiles;
  if (problem.k == 0) {
    events.accumulator_bytes += results * kBytesPerSum;
  } else {
    add_matmuls(machine.array, problem, t, events);
    commands += 3 * m_tiles * c_tiles * ceil_div(t.c_cols, t.n) * ceil_div(problem.k, t.k);
  }
  events.bus_bytes = t.load_bytes + loaded + results * problem.tensor_bytes +
                     (problem.out_on_chip ? 0 : out) + commands * hw::kCommandBytes;
  events.dram_bytes = events.bus_bytes;
  events.noc_byte_hops = static_cast<std::uint64_t>(
      hw::mesh_byte_hops(machine, static_cast<double>(events.bus_bytes)));
  return hw::energy_of(events, machine).total();
}

}  // namespace systole::mapper

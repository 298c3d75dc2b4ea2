#include "mapper/tile/tiling_cost.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/round.h"
#include "base/units.h"
#include "hw/array/array.h"
#include "hw/program/program.h"

namespace systole::mapper {
namespace {

/// Longer than any tile: all its bytes are contiguous.
constexpr std::uint64_t kRun = std::uint64_t{1} << 40;

/// Tiles of A that come in again and again meet the array at its banks, of which the model knows
/// nothing else. Measured on blocks of GPT-2 and vit65: 2 % to 10 % more array cycles.
constexpr double kRestagingConflicts = 1.1;

}  // namespace

TilingCost::TilingCost(const hw::Machine& machine, const TilingProblem& problem)
    : machine_(machine),
      problem_(problem),
      load_rate_(dma_rate(machine, machine.dma.outstanding_reads)),
      cautious_rate_(dma_rate(machine, (machine.dma.outstanding_reads + 1) / 2)),
      store_rate_(dma_rate(machine, machine.dma.outstanding_writes)),
      burst_cycles_(static_cast<double>(machine.dram.burst_length) * machine.core.clock_mhz /
                    (static_cast<double>(machine.dram.mega_transfers) * machine.dram.channels)) {}

bool TilingCost::may_fit(const Tiling& t) const {
  if (problem_.row_tile != 0 && t.m != problem_.row_tile) return false;
  if (problem_.by_rows && !t.m_outer && t.c_cols < problem_.n) return false;
  if (!operands_fit(t.c_cols, problem_.tensor_bytes, problem_.n)) return false;
  const std::uint64_t a_cols = problem_.k == 0 ? t.c_cols : t.k;
  if (!operands_fit(a_cols, problem_.pre_tensor_bytes, std::max(problem_.k, problem_.n))) {
    return false;
  }
  const std::uint64_t sums = problem_.sums * (problem_.in_turns ? 1 : 2);
  if (t.m * round_up(t.c_cols, machine_.array.cols) > sums) return false;
  const std::uint64_t a = problem_.a_on_chip ? 0 : std::uint64_t{t.m} * t.k;
  const std::uint64_t b = problem_.b_on_chip ? 0 : std::uint64_t{t.k} * t.n;
  return a + b <= problem_.stream_bytes;
}

std::optional<StreamPlan> TilingCost::plan(const Tiling& t) const {
  if (!is_distinct(t) || !may_fit(t) || (problem_.in_turns && !t.two_results)) return std::nullopt;
  const std::uint64_t sums = problem_.sums * (t.two_results ? 1 : 2);
  if (t.m * round_up(t.c_cols, machine_.array.cols) > sums) return std::nullopt;
  StreamPlan plan = stream_plan(machine_, problem_, t);
  if (plan.bytes() > problem_.stream_bytes) return std::nullopt;
  return plan;
}

bool TilingCost::evaluate_if_fits(Tiling& t) const {
  const std::optional<StreamPlan> plan = this->plan(t);
  if (plan) evaluate(t, *plan);
  return plan.has_value();
}

bool TilingCost::is_distinct(const Tiling& t) const {
  const bool stays = t.a_stays || t.b_stays;
  if ((stays || t.k_outer) && problem_.k == 0) return false;
  if (!t.double_buffered && (stays || t.two_results)) return false;
  if (t.k_outer && (t.n == t.c_cols || t.k >= problem_.k)) return false;
  if (t.far_ahead && (problem_.k == 0 || !t.double_buffered || 2 * t.k >= problem_.k)) return false;
  // Parameters of stages come in with their tiles of A.
  if (t.a_stays && (problem_.a_on_chip || problem_.pre_stages != 0 || t.n >= problem_.n)) {
    return false;
  }
  return !t.b_stays || (!problem_.b_on_chip && t.m < problem_.m);
}

bool TilingCost::operands_fit(std::uint64_t cols, std::uint64_t bytes, std::uint64_t all) const {
  if (problem_.even_cols && cols % 2 != 0 && cols != all) return false;
  return cols * bytes * hw::kOperandRows <= machine_.postop.operand_kib * hw::kKib;
}

void TilingCost::evaluate(Tiling& t, const StreamPlan& plan) const {
  const std::uint64_t m_tiles = ceil_div(problem_.m, t.m);
  const std::uint64_t c_tiles = ceil_div(problem_.n, t.c_cols);
  const std::uint64_t k_tiles = problem_.k == 0 ? 1 : ceil_div(problem_.k, t.k);
  const std::uint64_t a_bytes = std::uint64_t{problem_.m} * problem_.k;
  const std::uint64_t a_times = problem_.k == 0 ? 0 : this->a_times(t, plan);
  const std::uint64_t b_times = problem_.k == 0 ? 0 : this->b_times(t, plan);
  const std::uint64_t a_load =
      problem_.a_on_chip ? 0
                         : a_bytes * a_times * (problem_.a_bytes + problem_.pre_tensor_bytes) +
                               std::uint64_t{4} * problem_.pre_words * problem_.k *
                                   (plan.pre.count >= k_tiles ? 1 : a_times * m_tiles);
  t.a_loads = a_times;
  t.b_loads = b_times;
  t.staged = problem_.pre_stages * a_bytes * a_times;
  const std::uint64_t pre_rows = problem_.m * k_tiles * a_times;
  const std::uint64_t pre =
      problem_.pre_interval == 0
          ? 0
          : pre_rows * std::max(problem_.pre_interval, ceil_div(t.k, machine_.preop.lanes));
  const std::uint64_t b_load = problem_.b_on_chip ? 0 : b_bytes(t) * b_times;
  const std::uint64_t parameter_load =
      std::uint64_t{4} * problem_.parameter_words * problem_.n *
      (plan.parameters.count >= c_tiles || !t.m_outer ? 1 : m_tiles);
  t.load_bytes = a_load + b_load + parameter_load;
  t.compute_cycles = array_cycles(t);
  const Loads loads{a_load, b_load, parameter_load, pre};
  t.cycles = cycles(t, plan, loads, load_rate_);
  t.cautious_cycles = cycles(t, plan, loads, cautious_rate_);
}

std::uint64_t TilingCost::cycles(const Tiling& t, const StreamPlan& plan, const Loads& loads,
                                 const DmaRate& rate) const {
  const std::uint64_t m_tiles = ceil_div(problem_.m, t.m);
  const std::uint64_t c_tiles = ceil_div(problem_.n, t.c_cols);
  const std::uint64_t n_tiles = c_tiles * ceil_div(t.c_cols, t.n);
  const std::uint64_t k_tiles = problem_.k == 0 ? 1 : ceil_div(problem_.k, t.k);
  const std::uint64_t out = std::uint64_t{problem_.m} * problem_.n;
  // Rows of activations are apart in memory, and all rows for a loop unroller; other tiles of
  // weights and parameters are one run.
  const double a_time = time(rate, loads.a, t.k * problem_.a_bytes);
  const double b_time = time(rate, loads.b, t.unrolled || problem_.b_is_activation ? t.n : kRun);
  const double load = a_time + b_time + time(rate, loads.parameters, kRun);
  const double store = problem_.out_on_chip
                           ? 0.0
                           : time(store_rate_, out * (problem_.out_bytes + problem_.tensor_bytes),
                                  t.c_cols * problem_.out_bytes);
  const std::uint64_t row_cycles =
      std::max(ceil_div(t.c_cols, machine_.postop.lanes), problem_.postop_interval);
  const std::uint64_t postops = m_tiles * c_tiles;
  // The pipeline fills anew for each C tile.
  const double postop =
      static_cast<double>(problem_.m * c_tiles * row_cycles + postops * problem_.postop_fill);
  const double first = time(rate, plan.a.bytes, t.k) + time(rate, plan.b.bytes, kRun) +
                       static_cast<double>(problem_.pre_fill);
  const auto tiles = static_cast<double>(postops);
  // Commands are fetched from the same memory: a load for each operand, the matmul, per C tile a
  // result and its parameters.
  const std::uint64_t commands = 3 * m_tiles * n_tiles * k_tiles + 2 * m_tiles * c_tiles;
  const double fetch = time(rate, commands * hw::kCommandBytes, kRun);
  // Loads and stores share the memory, and whatever they take makes hiding them harder.
  const double memory = load + store + fetch;
  // Between the last matmul of a C tile and its result lie the array's skew and the pipeline.
  const double turnaround =
      tiles * static_cast<double>(machine_.array.rows + machine_.array.cols + problem_.postop_fill);
  const bool restages = problem_.pre_stages != 0 && t.a_loads != 1;
  const double compute =
      static_cast<double>(t.compute_cycles) * (restages ? kRestagingConflicts : 1.0);
  if (!t.double_buffered) {
    // Loads wait for the matmuls that use their places, matmuls for the results in front of them.
    return static_cast<std::uint64_t>(load + fetch + compute + turnaround +
                                      std::max(store, postop) + memory / 8);
  }
  // One C tile at a time: the array waits until it has left.
  const double units = std::max(
      t.two_results ? std::max({compute, postop, turnaround}) : compute + postop + turnaround,
      static_cast<double>(loads.pre));
  // What stays comes in during the first turn of the outer loop, which may be short for it.
  const auto turns = static_cast<double>(t.m_outer ? m_tiles : c_tiles);
  const bool b_once = t.m_outer && t.b_loads == 1, a_once = !t.m_outer && t.a_loads == 1;
  const double once = (a_once ? a_time : 0.0) + (b_once ? b_time : 0.0);
  const double memory_first = once + (memory - once) / turns;
  return static_cast<std::uint64_t>(std::max(units / turns, memory_first) +
                                    std::max(units - units / turns, memory - memory_first) +
                                    memory / 8 + first + std::max(store, postop) / tiles);
}

// A slot is overwritten once all slots of its operand have been filled since: a tile is loaded
// again unless there are as many slots as tiles between its uses.
std::uint64_t TilingCost::a_times(const Tiling& t, const StreamPlan& plan) const {
  if (t.unrolled) return ceil_div(problem_.n, t.n);
  const std::uint64_t c_tiles = ceil_div(problem_.n, t.c_cols);
  const std::uint64_t parts = ceil_div(t.c_cols, t.n);
  const std::uint64_t row = ceil_div(problem_.k, t.k);
  const std::uint64_t between = t.m_outer ? row : row * ceil_div(problem_.m, t.m);
  if (plan.a.count >= between) return 1;
  return c_tiles * (t.k_outer || plan.a.count >= row ? 1 : parts);
}

std::uint64_t TilingCost::b_times(const Tiling& t, const StreamPlan& plan) const {
  const std::uint64_t m_tiles = ceil_div(problem_.m, t.m);
  if (t.unrolled) return m_tiles;
  const std::uint64_t c_tiles = t.m_outer ? ceil_div(problem_.n, t.c_cols) : 1;
  const std::uint64_t between = c_tiles * ceil_div(t.c_cols, t.n) * ceil_div(problem_.k, t.k);
  return plan.b.count >= between ? 1 : m_tiles;
}

std::uint64_t TilingCost::b_bytes(const Tiling& t) const {
  if (problem_.b_is_activation || t.unrolled || problem_.k == 0) {
    return std::uint64_t{problem_.k} * problem_.n;
  }
  // Rows of each tile are padded to whole words.
  const auto padded = [](std::uint64_t extent, std::uint64_t tile, std::uint64_t unit) {
    return extent / tile * round_up(tile, unit) + round_up(extent % tile, unit);
  };
  if (problem_.b_transposed) return problem_.n * padded(problem_.k, t.k, machine_.array.rows);
  const std::uint64_t sections = ceil_div(problem_.n, t.c_cols);
  const std::uint64_t last = problem_.n - (sections - 1) * t.c_cols;
  return problem_.k * ((sections - 1) * padded(t.c_cols, t.n, machine_.array.cols) +
                       padded(last, t.n, machine_.array.cols));
}

double TilingCost::time(const DmaRate& rate, std::uint64_t bytes, std::uint64_t run) const {
  if (bytes == 0) return 0.0;
  const std::uint64_t runs = ceil_div(bytes, run);
  // Requests keep to multiples of their size: a run that does not is cut once more, on average.
  const double size = machine_.dma.request_bytes;
  const auto length = static_cast<double>(std::min(bytes, run));
  const double cuts = run % machine_.dma.request_bytes == 0 ? 0.0 : 1.0 - 1.0 / size;
  const double requests = static_cast<double>(runs) * std::max(1.0, length / size + cuts);
  // A port issues one request a cycle.
  const double each = std::max({rate.cycles_per_request, burst_cycles_, 1.0});
  return std::max(static_cast<double>(bytes) / rate.bytes_per_cycle, requests * each);
}

std::uint64_t TilingCost::array_cycles(const Tiling& t) const {
  if (problem_.k == 0) return 0;
  /// Pieces of one size.
  struct Pieces {
    std::uint64_t size, count;
  };
  const auto cut = [](std::uint64_t extent, std::uint64_t size) {
    return std::array<Pieces, 2>{{{size, extent / size}, {extent % size, 1}}};
  };
  // Every C tile is cut by itself.
  const std::array<Pieces, 2> tiles = cut(problem_.n, t.c_cols);
  std::uint64_t sum = 0;
  for (const Pieces& tile : tiles) {
    for (const Pieces& n : cut(tile.size, t.n)) {
      for (const Pieces& m : cut(problem_.m, t.m)) {
        for (const Pieces& k : cut(problem_.k, t.k)) {
          if (tile.size == 0 || n.size == 0 || m.size == 0 || k.size == 0) continue;
          sum += tile.count * n.count * m.count * k.count *
                 hw::array_cycles(machine_.array, m.size, n.size, k.size, true).interval;
        }
      }
    }
  }
  return sum;
}

}  // namespace systole::mapper

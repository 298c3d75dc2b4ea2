#include "mapper/tile/tiling_cost.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/round.h"
#include "base/units.h"
#include "hw/array/array.h"
#include "hw/core/bank_words.h"
#include "hw/memory/fixed_memory.h"
#include "hw/number/weight_groups.h"
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
      burst_cycles_(static_cast<double>(hw::memory_grain(machine)) * machine.core.clock_mhz /
                    hw::memory_rate(machine)) {}

bool TilingCost::may_fit(const Tiling& t) const {
  if (problem_.row_tile != 0 && t.m != problem_.row_tile) return false;
  if (problem_.b_packed() && t.k % hw::kGroupWeights != 0) return false;
  if (problem_.out_int4 && t.c_cols % hw::kInt4Pair != 0 && t.c_cols != problem_.n) return false;
  if (problem_.int4.b && t.k % hw::kInt4Pair != 0 && t.k < problem_.k) return false;
  if (!operands_fit(t.c_cols, problem_.tensor_bytes, problem_.n)) return false;
  const std::uint64_t a_cols = problem_.k == 0 ? t.c_cols : t.k;
  if (!operands_fit(a_cols, problem_.pre_tensor_bytes, std::max(problem_.k, problem_.n))) {
    return false;
  }
  const std::uint64_t sums = problem_.sums * (problem_.in_turns ? 1 : 2);
  if (t.m * round_up(t.c_cols, machine_.array.cols) > sums) return false;
  const std::uint64_t a = problem_.a_on_chip ? 0 : std::uint64_t{t.m} * problem_.a_cols(t.k);
  const std::uint64_t b = problem_.b_on_chip ? 0 : std::uint64_t{problem_.b_rows(t.k)} * t.n;
  return a + b <= problem_.stream_bytes;
}

bool TilingCost::may_fit_twice(const Tiling& t) const {
  if (!may_fit(t)) return false;
  Tiling least = t;
  least.a_stays = least.b_stays = least.far_ahead = false;
  return stream_plan(machine_, problem_, least).bytes() <= problem_.stream_bytes;
}

std::optional<StreamPlan> TilingCost::plan(const Tiling& t) const {
  if (!is_distinct(t) || (problem_.in_turns && !t.two_results)) return std::nullopt;
  if (problem_.by_rows && !t.m_outer && t.c_cols < problem_.n) return std::nullopt;
  const std::uint64_t tile = t.m * round_up(t.c_cols, machine_.array.cols);
  if (tile > problem_.sums * (t.two_results ? 1 : 2)) return std::nullopt;
  // Where there is room for two results, one as a whole only makes the array wait.
  const bool in_turn = t.double_buffered && !t.two_results && !t.in_parts;
  if (in_turn && !problem_.in_turns && tile <= problem_.sums) return std::nullopt;
  StreamPlan plan = stream_plan(machine_, problem_, t);
  if (plan.bytes() > problem_.stream_bytes) return std::nullopt;
  return plan;
}

bool TilingCost::evaluate_if_fits(Tiling& t) const {
  return may_fit(t) && evaluate_if_fits(t, shape(t));
}

bool TilingCost::evaluate_if_fits(Tiling& t, const Shape& shape) const {
  const std::optional<StreamPlan> plan = this->plan(t);
  if (plan) evaluate(t, *plan, shape);
  return plan.has_value();
}

bool TilingCost::is_distinct(const Tiling& t) const {
  const bool stays = t.a_stays || t.b_stays;
  if ((stays || t.k_outer) && problem_.k == 0) return false;
  if (!t.double_buffered && (stays || t.two_results)) return false;
  if (t.k_outer && (t.n == t.c_cols || t.k >= problem_.k)) return false;
  // Of one row tile, or of whole rows, the order of the two outer loops is no choice.
  if (!t.m_outer && (t.m >= problem_.m || t.c_cols >= problem_.n)) return false;
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

TilingCost::Shape TilingCost::shape(const Tiling& t, std::uint64_t array_cycles) const {
  Shape shape{};
  shape.m_tiles = ceil_div(problem_.m, t.m);
  shape.c_tiles = ceil_div(problem_.n, t.c_cols);
  shape.n_tiles = shape.c_tiles * ceil_div(t.c_cols, t.n);
  shape.k_tiles = problem_.k == 0 ? 1 : ceil_div(problem_.k, t.k);
  shape.array_cycles = array_cycles;
  shape.b_bytes = b_bytes(t);
  const std::uint64_t out = std::uint64_t{problem_.m} * problem_.n;
  shape.store =
      problem_.out_on_chip
          ? 0.0
          : time(store_rate_,
                 problem_.m * problem_.result_bytes(problem_.n) + out * problem_.tensor_bytes,
                 problem_.result_bytes(t.c_cols));
  const std::uint64_t row_cycles = std::max<std::uint64_t>(
      ceil_div(t.c_cols, machine_.result_lanes()), problem_.postop_interval);
  const std::uint64_t postops = shape.m_tiles * shape.c_tiles;
  // The pipeline fills anew for each C tile.
  shape.postop =
      static_cast<double>(problem_.m * shape.c_tiles * row_cycles + postops * problem_.postop_fill);
  // Between the last matmul of a C tile and its result lie the array's skew and the pipeline.
  shape.turnaround =
      static_cast<double>(shape.m_tiles * shape.c_tiles) *
      static_cast<double>(machine_.array.rows + machine_.array.cols + problem_.postop_fill);
  if (!problem_.a_on_chip) {
    shape.a_tile = std::uint64_t{t.m} * operand_pitch(problem_.a_cols(t.k), machine_.array.rows);
  }
  if (!problem_.b_on_chip) shape.b_tile = std::uint64_t{problem_.b_rows(t.k)} * t.n;
  shape.loading = loading(t, shape, load_rate_);
  shape.cautious = loading(t, shape, cautious_rate_);
  return shape;
}

TilingCost::Loading TilingCost::loading(const Tiling& t, const Shape& shape,
                                        const DmaRate& rate) const {
  Loading loading;
  // Commands are fetched from the same memory: a load for each operand, the matmul, per C tile a
  // result and its parameters.
  const std::uint64_t commands =
      3 * shape.m_tiles * shape.n_tiles * shape.k_tiles + 2 * shape.m_tiles * shape.c_tiles;
  loading.fetch = time(rate, commands * hw::kCommandBytes, kRun);
  // Everything is loaded once at least.
  const Loads once = loads(shape, 1, 1, 1, 1);
  loading.memory = a_time(rate, t, once.a) + b_time(rate, t, once.b) +
                   time(rate, once.parameters, kRun) + shape.store + loading.fetch;
  // Parameters of stages may stay.
  loading.a_again = again(rate, loads(shape, 1, 0, 1, 1).a, a_run(t));
  loading.b_again = again(rate, once.b, b_run(t));
  loading.least = least_cycles(shape, loading.memory, false);
  loading.least_of_one_result = least_cycles(shape, loading.memory, true);
  return loading;
}

double TilingCost::least_cycles(const Shape& shape, double memory, bool one_result) const {
  const auto tiles = static_cast<double>(shape.m_tiles * shape.c_tiles);
  const double rest = memory / 8 + std::max(shape.store, shape.postop) / tiles;
  const auto compute = static_cast<double>(shape.array_cycles);
  const double units = one_result ? compute + shape.postop + shape.turnaround
                                  : std::max({compute, shape.postop, shape.turnaround});
  // Sums of doubles in another order may differ in their last bits.
  constexpr double kRounding = 1 - 1e-9;
  return std::floor((std::max(units, memory) + rest) * kRounding);
}

TilingCost::Least TilingCost::least_of(const Tiling& t, const Shape& shape) const {
  // No operand has more slots than there is room for.
  const auto most_slots = [&](std::uint64_t bytes) {
    return bytes == 0 ? std::numeric_limits<std::uint64_t>::max() : problem_.stream_bytes / bytes;
  };
  const double a_times = this->a_times(t, shape, most_slots(shape.a_tile));
  const double b_times = this->b_times(t, shape, most_slots(shape.b_tile));
  const auto least = [&](const Loading& loading) {
    const double memory =
        loading.memory + (a_times - 1) * loading.a_again + (b_times - 1) * loading.b_again;
    return least_cycles(shape, memory, !t.two_results && !t.in_parts);
  };
  return {least(shape.loading), least(shape.cautious)};
}

TilingCost::Loads TilingCost::loads(const Shape& shape, double a_times, double pre_times,
                                    double b_times, double parameter_times) const {
  Loads loads{};
  if (!problem_.a_on_chip) {
    loads.a = times_loaded(std::uint64_t{problem_.m} * problem_.a_cols(problem_.k) *
                               (problem_.a_bytes + problem_.pre_tensor_bytes),
                           a_times) +
              times_loaded(std::uint64_t{4} * problem_.pre_words * problem_.k, pre_times);
  }
  if (!problem_.b_on_chip) loads.b = times_loaded(shape.b_bytes, b_times);
  loads.parameters =
      times_loaded(std::uint64_t{4} * problem_.parameter_words * problem_.n, parameter_times);
  return loads;
}

// Rows of activations are apart in memory, and all rows for a loop unroller; other tiles of weights
// and parameters are one run.
std::uint64_t TilingCost::a_run(const Tiling& t) const {
  const std::uint64_t run = problem_.a_cols(t.k) * problem_.a_bytes;
  return problem_.window ? std::min<std::uint64_t>(run, problem_.window_run) : run;
}
std::uint64_t TilingCost::b_run(const Tiling& t) const {
  if (problem_.b_packed()) return hw::packed_group_bytes(problem_.b_format, t.n);
  if (t.unrolled) return t.n;
  if (!problem_.b_is_activation) return kRun;
  return problem_.b_transposed ? t.k : t.n;
}
double TilingCost::a_time(const DmaRate& rate, const Tiling& t, std::uint64_t bytes) const {
  const std::uint64_t run = a_run(t);
  return time(rate, bytes, run, a_opened(bytes, run));
}

// Rows of a tile are a row of A apart, and the next tile of the same rows comes later.
double TilingCost::a_opened(std::uint64_t bytes, std::uint64_t run) const {
  if (bytes == 0) return 0.0;
  const double pitch = static_cast<double>(problem_.a_cols(problem_.k)) * problem_.a_bytes;
  const double row = static_cast<double>(machine_.dram.row_bytes) * machine_.dram.channels;
  return static_cast<double>(ceil_div(bytes, run)) / std::max(1.0, row / std::max(1.0, pitch));
}
double TilingCost::b_time(const DmaRate& rate, const Tiling& t, std::uint64_t bytes) const {
  const std::uint64_t run = b_run(t);
  if (!problem_.b_packed()) return time(rate, bytes, run);
  // The expander passes what it makes of the bytes, if that takes longer than they do.
  const hw::ExpansionCycles cycles =
      hw::expansion_cycles(t.n, machine_.dma.expander_lanes, hw::scratchpad_word_bytes(machine_));
  return std::max(time(rate, bytes, run), static_cast<double>(bytes / run * cycles.per_group));
}

double TilingCost::again(const DmaRate& rate, std::uint64_t bytes, std::uint64_t run) const {
  const double more = time(rate, 2 * bytes, run) - time(rate, bytes, run);
  if (bytes < run) return more;
  // The last run of each time may be short: one of them and the requests that are cut.
  const double size = machine_.dma.request_bytes;
  return std::max(0.0, more - 2 * (static_cast<double>(run) / size + 1) * request_cycles(rate));
}

void TilingCost::evaluate(Tiling& t, const StreamPlan& plan, const Shape& shape) const {
  t.a_loads = problem_.k == 0 ? 0 : a_times(t, shape, plan.a.count);
  t.b_loads = problem_.k == 0 ? 0 : b_times(t, shape, plan.b.count);
  Loads loads = this->loads(
      shape, t.a_loads,
      plan.pre.count >= shape.k_tiles ? 1 : t.a_loads * static_cast<double>(shape.m_tiles),
      t.b_loads,
      plan.parameters.count >= shape.c_tiles || !t.m_outer ? 1
                                                           : static_cast<double>(shape.m_tiles));
  t.staged = problem_.pre_stages * times_loaded(std::uint64_t{problem_.m} * problem_.k, t.a_loads);
  if (problem_.pre_interval != 0) {
    loads.pre = times_loaded(problem_.m * shape.k_tiles, t.a_loads) *
                std::max(problem_.pre_interval, ceil_div(t.k, machine_.preop.lanes));
  }
  t.load_bytes = loads.a + loads.b + loads.parameters;
  t.compute_cycles = shape.array_cycles;
  t.cycles = cycles(t, plan, shape, loads, load_rate_, shape.loading);
  t.cautious_cycles = cycles(t, plan, shape, loads, cautious_rate_, shape.cautious);
}

std::uint64_t TilingCost::cycles(const Tiling& t, const StreamPlan& plan, const Shape& shape,
                                 const Loads& loads, const DmaRate& rate,
                                 const Loading& loading) const {
  const double a_time = this->a_time(rate, t, loads.a), b_time = this->b_time(rate, t, loads.b);
  const double load = a_time + b_time + time(rate, loads.parameters, kRun);
  const double store = shape.store, postop = shape.postop, turnaround = shape.turnaround;
  const double first = time(rate, plan.a.bytes, t.k) + time(rate, plan.b.bytes, kRun) +
                       static_cast<double>(problem_.pre_fill);
  const auto tiles = static_cast<double>(shape.m_tiles * shape.c_tiles);
  // Loads and stores share the memory, and whatever they take makes hiding them harder.
  const double memory = load + store + loading.fetch;
  const bool restages = problem_.pre_stages != 0 && t.a_loads != 1;
  const double compute =
      static_cast<double>(t.compute_cycles) * (restages ? kRestagingConflicts : 1.0);
  if (!t.double_buffered) {
    // Loads wait for the matmuls that use their places, matmuls for the results before them.
    return static_cast<std::uint64_t>(load + loading.fetch + compute + turnaround +
                                      std::max(store, postop) + memory / 8);
  }
  // One C tile at a time: the array waits until it has left.
  const bool alone = !t.two_results && !t.in_parts;
  const PartTimes parts = part_times(t, shape);
  const double units =
      std::max(alone ? compute + postop + turnaround
                     : std::max({compute + parts.wait, parts.leave, postop, turnaround}),
               static_cast<double>(loads.pre));
  // What stays comes in during the first turn of the outer loop, which may be short for it.
  const auto turns = static_cast<double>(t.m_outer ? shape.m_tiles : shape.c_tiles);
  const bool b_once = t.m_outer && t.b_loads == 1, a_once = !t.m_outer && t.a_loads == 1;
  const double once = (a_once ? a_time : 0.0) + (b_once ? b_time : 0.0);
  const double memory_first = once + (memory - once) / turns;
  return static_cast<std::uint64_t>(std::max(units / turns, memory_first) +
                                    std::max(units - units / turns, memory - memory_first) +
                                    memory / 8 + first + std::max(store, postop) / tiles);
}

// Places come free in the order in which the next C tile takes them: while the rest of the last k
// is multiplied, in the free places, and in those before. Results of the same rows overlap in
// memory, so that one begins when those before it are there.
TilingCost::PartTimes TilingCost::part_times(const Tiling& t, const Shape& shape) const {
  if (!t.in_parts) return {};
  const auto parts = static_cast<double>(ceil_div(t.c_cols, t.n));
  const auto places = static_cast<double>(problem_.part_places(t, machine_.array.cols));
  const auto tiles = static_cast<double>(shape.m_tiles * shape.c_tiles);
  const double trip =
      problem_.out_on_chip ? 0.0 : store_rate_.cycles_per_request * machine_.dma.outstanding_writes;
  const double leaves =
      shape.postop / tiles / parts + trip + static_cast<double>(problem_.postop_fill);
  const double multiplied =
      static_cast<double>(shape.array_cycles) / tiles / static_cast<double>(shape.k_tiles) / parts;
  PartTimes times;
  times.leave = tiles * parts * leaves;
  if (places >= 2 * parts) return times;
  const double first = leaves - (places - 1) * multiplied;
  const double last = parts * leaves - (parts + places - 2) * multiplied;
  times.wait = tiles * std::max({0.0, first, last});
  return times;
}

// The slot that is overwritten is the one that was not used for longest. Where tiles are swept back
// and forth, each sweep but the first finds those that the last one ended with, as many as there
// are slots for; of those that are used in groups, whole groups. Where they are always swept in one
// direction, it finds all of them or none.
double TilingCost::sweep_loads(const Tiling& t, std::uint64_t tiles, std::uint64_t sweeps,
                               std::uint64_t slots, std::uint64_t group) {
  if (slots >= tiles) return 1;
  const std::uint64_t kept = t.back_and_forth ? slots / group * group : 0;
  return 1 + static_cast<double>(sweeps - 1) *
                 (1 - static_cast<double>(kept) / static_cast<double>(tiles));
}

double TilingCost::a_times(const Tiling& t, const Shape& shape, std::uint64_t slots) const {
  if (t.unrolled) return static_cast<double>(ceil_div(problem_.n, t.n));
  const std::uint64_t parts = t.k_outer ? 1 : shape.n_tiles / shape.c_tiles, row = shape.k_tiles;
  if (t.m_outer || shape.m_tiles == 1) {
    return sweep_loads(t, row, shape.c_tiles * parts, slots, 1);
  }
  if (slots >= row * shape.m_tiles) return 1;
  return static_cast<double>(shape.c_tiles) * sweep_loads(t, row, parts, slots, 1);
}

double TilingCost::b_times(const Tiling& t, const Shape& shape, std::uint64_t slots) {
  if (t.unrolled) return static_cast<double>(shape.m_tiles);
  const std::uint64_t c_tiles = t.m_outer ? shape.c_tiles : 1;
  const std::uint64_t parts = shape.n_tiles / shape.c_tiles;
  const std::uint64_t tiles = c_tiles * parts * shape.k_tiles;
  const bool in_turn = c_tiles == 1 && (t.k_outer || parts == 1);
  return sweep_loads(t, tiles, shape.m_tiles, slots, in_turn ? parts : tiles);
}

std::uint64_t TilingCost::b_bytes(const Tiling& t) const {
  if (problem_.b_is_activation || t.unrolled || problem_.k == 0) {
    return std::uint64_t{problem_.k} * problem_.n;
  }
  if (problem_.b_packed()) {
    return hw::packed_bytes(problem_.b_format, problem_.k, problem_.n);
  }
  // Rows of each tile are padded.
  const auto padded = [](std::uint64_t extent, std::uint64_t tile, std::uint32_t unit) {
    return extent / tile * operand_pitch(tile, unit) + operand_pitch(extent % tile, unit);
  };
  const std::uint64_t rows = problem_.b_rows(problem_.k);
  if (problem_.b_transposed) {
    return problem_.n * padded(rows, problem_.b_rows(t.k), machine_.array.rows);
  }
  const std::uint64_t sections = ceil_div(problem_.n, t.c_cols);
  const std::uint64_t last = problem_.n - (sections - 1) * t.c_cols;
  return rows * ((sections - 1) * padded(t.c_cols, t.n, machine_.array.cols) +
                 padded(last, t.n, machine_.array.cols));
}

double TilingCost::time(const DmaRate& rate, std::uint64_t bytes, std::uint64_t run,
                        double opened) const {
  if (bytes == 0) return 0.0;
  const std::uint64_t runs = ceil_div(bytes, run);
  // Requests keep to multiples of their size: a run that does not is cut once more, on average.
  const double size = machine_.dma.request_bytes;
  const auto length = static_cast<double>(std::min(bytes, run));
  const double cuts = run % machine_.dma.request_bytes == 0 ? 0.0 : 1.0 - 1.0 / size;
  const double requests = static_cast<double>(runs) * std::max(1.0, length / size + cuts);
  return std::max({static_cast<double>(bytes) / rate.bytes_per_cycle,
                   requests * request_cycles(rate),
                   requests * rate.cycles_per_request + opened * rate.cycles_per_row});
}

double TilingCost::request_cycles(const DmaRate& rate) const {
  // A port issues one request a cycle.
  return std::max({rate.cycles_per_request, burst_cycles_, 1.0});
}

// A tile of an operand is in one bank as a rule, and gives two words for a row of full rate where
// its elements are wider, or more, than a step of the array takes of them.
std::uint64_t TilingCost::product_cycles(std::uint64_t m, std::uint64_t n, std::uint64_t k) const {
  hw::cmd::Matmul product;
  product.m = narrow(m);
  product.n = narrow(n);
  product.k = narrow(k);
  product.a_int4 = problem_.int4.a;
  product.b_int4 = problem_.int4.b;
  product.b_transposed = problem_.b_transposed;
  const std::uint64_t interval = hw::steady_matmul_cycles(machine_.array, product);
  if (!problem_.int4.b) return interval;
  const hw::ArrayReads reads = hw::array_reads(machine_.array, m, n, k, problem_.int4);
  return std::max(interval,
                  ceil_div(std::max(reads.a, reads.b), std::uint64_t{machine_.scratchpad.ports}));
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
          sum += tile.count * n.count * m.count * k.count * product_cycles(m.size, n.size, k.size);
        }
      }
    }
  }
  return sum;
}

}  // namespace systole::mapper

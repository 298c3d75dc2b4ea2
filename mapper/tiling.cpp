#include "mapper/tiling.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "hw/array.h"
#include "hw/error.h"
#include "hw/program.h"
#include "mapper/round.h"

namespace systole::mapper {
namespace {

/// Pieces that a dimension may be cut into. More never pays: beyond it the pieces hardly change.
constexpr std::uint32_t kMostPieces = 64;

/// Longer than any tile: all its bytes are contiguous.
constexpr std::uint64_t kRun = std::uint64_t{1} << 40;

/// Sizes of the balanced cuts of `extent` into 1, 2, 3 ... pieces, multiples of `unit`, largest
/// first, none twice.
std::vector<std::uint32_t> balanced_cuts(std::uint32_t extent, std::uint32_t unit) {
  std::vector<std::uint32_t> sizes;
  const auto most = std::min<std::uint64_t>(ceil_div(extent, unit), kMostPieces);
  for (std::uint32_t pieces = 1; pieces <= most; ++pieces) {
    const auto size = static_cast<std::uint32_t>(round_up(ceil_div(extent, pieces), unit));
    if (sizes.empty() || size < sizes.back()) sizes.push_back(size);
  }
  // The smallest piece there is must be among them, or a small memory may find nothing.
  if (sizes.back() > unit) sizes.push_back(unit);
  return sizes;
}

class Cost {
 public:
  Cost(const hw::Machine& machine, const TilingProblem& problem)
      : machine_(machine),
        problem_(problem),
        load_rate_(dma_rate(machine, machine.dma.outstanding_reads)),
        store_rate_(dma_rate(machine, machine.dma.outstanding_writes)) {}

  [[nodiscard]] bool fits(const Tiling& t) const {
    const std::uint64_t half = std::uint64_t{machine_.accumulator.kib} * 1024 / 4 / 2;
    if (t.m * round_up(t.c_cols, machine_.array.cols) > half) return false;
    return 2 * (a_tile(t) + b_tile(t) + parameters(t)) <= problem_.stream_bytes;
  }

  void evaluate(Tiling& t) const {
    const std::uint64_t m_tiles = ceil_div(problem_.m, t.m);
    const std::uint64_t c_tiles = ceil_div(problem_.n, t.c_cols);
    const std::uint64_t n_tiles = c_tiles * ceil_div(t.c_cols, t.n);
    const std::uint64_t k_tiles = problem_.k == 0 ? 1 : ceil_div(problem_.k, t.k);
    const std::uint64_t a_bytes = std::uint64_t{problem_.m} * problem_.k;
    const std::uint64_t b_bytes = std::uint64_t{problem_.k} * round_up(problem_.n, 4);
    // An operand is loaded once if its tile survives the loop that does not index it.
    const bool whole_k = k_tiles == 1;
    const std::uint64_t a_times = whole_k && (t.m_outer || n_tiles == 1) ? 1 : n_tiles;
    const std::uint64_t b_times =
        whole_k && (!t.m_outer || m_tiles == 1 || n_tiles == 1) ? 1 : m_tiles;
    const std::uint64_t a_load = problem_.a_on_chip ? 0 : a_bytes * a_times;
    const std::uint64_t b_load = problem_.b_on_chip ? 0 : b_bytes * b_times;
    const std::uint64_t parameter_load =
        std::uint64_t{4} * problem_.parameter_words * problem_.n * (c_tiles == 1 ? 1 : m_tiles);
    t.load_bytes = a_load + b_load + parameter_load;
    t.compute_cycles = problem_.k == 0 ? 0 : compute(t, m_tiles, n_tiles, k_tiles);
    const std::uint64_t out = std::uint64_t{problem_.m} * problem_.n;
    // Rows of activations are apart in memory; tiles of weights and parameters are one run.
    const double load = time(load_rate_, a_load, t.k) +
                        time(load_rate_, b_load, problem_.b_is_activation ? t.n : kRun) +
                        time(load_rate_, parameter_load, kRun);
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
    const double first = time(load_rate_, a_tile(t), t.k) + time(load_rate_, b_tile(t), kRun);
    const auto tiles = static_cast<double>(postops);
    // Commands are fetched from the same memory: a load for each operand, the matmul, per C tile a
    // result and its parameters.
    const std::uint64_t commands = 3 * m_tiles * n_tiles * k_tiles + 2 * m_tiles * c_tiles;
    const double fetch = time(load_rate_, commands * hw::kCommandBytes, kRun);
    // Loads and stores share the memory, and whatever they take makes hiding them harder.
    const double memory = load + store + fetch;
    // Between the last matmul of a C tile and its result lie the array's skew and the pipeline.
    const double turnaround =
        tiles *
        static_cast<double>(machine_.array.rows + machine_.array.cols + problem_.postop_fill);
    t.cycles = static_cast<std::uint64_t>(
        std::max({static_cast<double>(t.compute_cycles), memory, postop, turnaround}) + memory / 8 +
        first + std::max(store, postop) / tiles);
  }

 private:
  [[nodiscard]] std::uint64_t a_tile(const Tiling& t) const {
    return problem_.a_on_chip ? 0 : t.m * round_up(t.k, machine_.array.rows);
  }
  [[nodiscard]] std::uint64_t b_tile(const Tiling& t) const {
    if (problem_.b_on_chip) return 0;
    // Stored k x n or, transposed, n x k: the larger of the two padded forms.
    return std::max(t.k * round_up(t.n, machine_.array.cols),
                    t.n * round_up(t.k, machine_.array.rows));
  }
  /// Cycles to move `bytes` that lie in runs of `run` bytes.
  [[nodiscard]] double time(const DmaRate& rate, std::uint64_t bytes, std::uint64_t run) const {
    if (bytes == 0) return 0.0;
    const std::uint64_t runs = ceil_div(bytes, run);
    // Requests keep to multiples of their size: a run that does not is cut once more, on average.
    const double size = machine_.dma.request_bytes;
    const auto length = static_cast<double>(std::min(bytes, run));
    const double cuts = run % machine_.dma.request_bytes == 0 ? 0.0 : 1.0 - 1.0 / size;
    const double requests = static_cast<double>(runs) * std::max(1.0, length / size + cuts);
    return std::max(static_cast<double>(bytes) / rate.bytes_per_cycle,
                    requests * rate.cycles_per_request);
  }
  [[nodiscard]] std::uint64_t parameters(const Tiling& t) const {
    return std::uint64_t{4} * problem_.parameter_words * t.c_cols;
  }
  [[nodiscard]] std::uint64_t compute(const Tiling& t, std::uint64_t m_tiles, std::uint64_t n_tiles,
                                      std::uint64_t k_tiles) const {
    const auto cycles = [&](std::uint64_t m, std::uint64_t n, std::uint64_t k) {
      return m == 0 || n == 0 || k == 0 ? 0
                                        : hw::array_cycles(machine_.array, m, n, k, true).interval;
    };
    const std::uint64_t m_rest = problem_.m - (m_tiles - 1) * t.m;
    // The last piece of a section is as short in every one.
    const std::uint64_t n_rests = problem_.section == 0 ? 1 : problem_.n / problem_.section;
    const std::uint64_t n_rest =
        (problem_.section == 0 ? problem_.n : problem_.section) - (n_tiles / n_rests - 1) * t.n;
    const std::uint64_t k_rest = problem_.k - (k_tiles - 1) * t.k;
    std::uint64_t sum = 0;
    for (const auto& [m, ms] : {std::pair{std::uint64_t{t.m}, m_tiles - 1}, {m_rest, 1}}) {
      for (const auto& [n, ns] :
           {std::pair{std::uint64_t{t.n}, n_tiles - n_rests}, {n_rest, n_rests}}) {
        for (const auto& [k, ks] : {std::pair{std::uint64_t{t.k}, k_tiles - 1}, {k_rest, 1}}) {
          sum += ms * ns * ks * cycles(m, n, k);
        }
      }
    }
    return sum;
  }

  const hw::Machine& machine_;
  const TilingProblem& problem_;
  DmaRate load_rate_, store_rate_;
};

std::optional<Tiling> best_tiling(const hw::Machine& machine, const TilingProblem& problem) {
  const Cost cost(machine, problem);
  std::optional<Tiling> best;
  const auto consider = [&](Tiling t) {
    if (!cost.fits(t)) return;
    cost.evaluate(t);
    if (!best || t.cycles < best->cycles ||
        (t.cycles == best->cycles && t.load_bytes < best->load_bytes)) {
      best = t;
    }
  };
  const auto k_cuts =
      problem.k == 0 ? std::vector<std::uint32_t>{0} : balanced_cuts(problem.k, machine.array.rows);
  const std::uint32_t most_cols = problem.section == 0 ? problem.n : problem.section;
  for (const std::uint32_t m : balanced_cuts(problem.m, 1)) {
    for (const std::uint32_t n : balanced_cuts(most_cols, machine.array.cols)) {
      for (const std::uint32_t k : k_cuts) {
        Tiling t;
        t.m = m;
        t.n = std::min(n, most_cols);
        t.c_cols = problem.row_wise || problem.section != 0 ? most_cols : t.n;
        t.k = std::min(k, problem.k);
        if (problem.k == 0) t.n = t.c_cols;
        for (const bool m_outer : {true, false}) {
          t.m_outer = m_outer;
          consider(t);
        }
      }
    }
  }
  return best;
}

}  // namespace

DmaRate dma_rate(const hw::Machine& machine, std::uint32_t outstanding) {
  const double core = machine.core.clock_mhz;
  const double bus = machine.bus.width_bytes * static_cast<double>(machine.bus.clock_mhz) / core;
  const double dram = machine.dram.channels * static_cast<double>(machine.dram.bus_bytes) *
                      machine.dram.mega_transfers / core;
  const double latency_ns = (machine.bus.request_latency + machine.bus.response_latency) * 1000.0 /
                                machine.bus.clock_mhz +
                            machine.dram.controller_ns + machine.dram.t_cl_ns;
  return {std::min(bus, dram), latency_ns * core / 1000.0 / outstanding};
}

TilingProblem tiling_problem(const model::Graph& graph, const Group& group,
                             const Placement& placement, const hw::Machine& machine) {
  const auto on_chip = [&](const model::View& view) {
    return placement.tensors[view.tensor].place == Location::Place::kScratchpad;
  };
  TilingProblem problem;
  problem.m = group.m();
  problem.n = group.n();
  problem.k = group.k();
  problem.row_wise = hw::is_row_wise(group.chain);
  if (group.has_matmul) {
    problem.a_on_chip = on_chip(group.a);
    problem.b_on_chip = on_chip(group.b);
    problem.b_is_activation = graph.tensors[group.b.tensor].kind != model::Tensor::Kind::kConstant;
  }
  problem.out_on_chip = on_chip(group.out);
  problem.parameter_words = hw::parameter_words(group.chain);
  problem.out_bytes = static_cast<std::uint32_t>(hw::bytes_of(group.chain.out));
  if (group.tensor.tensor != model::kNoTensor) {
    problem.tensor_bytes =
        static_cast<std::uint32_t>(hw::bytes_of(graph.tensors[group.tensor.tensor].type));
  }
  // How long the rows of other chains are depends on the tiles: one vector here.
  const std::uint32_t cols = problem.row_wise ? problem.n : machine.postop.lanes;
  const hw::ChainCycles postop = hw::chain_cycles(group.chain, 1, cols, machine.postop.lanes);
  problem.postop_interval = postop.per_row;
  problem.postop_fill = postop.fill;
  problem.section = group.section_cols();
  for (const MixLayer& encoder : group.sections.encoders) {
    const std::uint64_t interval =
        hw::mix_interval(encoder.mix, encoder.features(), machine.attention.encoder_lines,
                         machine.attention.macs_per_line);
    problem.postop_interval = std::max(problem.postop_interval, interval);
  }
  problem.stream_bytes = std::uint64_t{machine.scratchpad.kib} * 1024 - placement.scratchpad_end;
  return problem;
}

Tiling Tiler::choose(const TilingProblem& problem, const std::string& group) {
  if (const auto found = known_.find(problem.key()); found != known_.end()) return found->second;
  const std::optional<Tiling> tiling = best_tiling(machine_, problem);
  if (!tiling) {
    throw hw::InputError("scratchpad.kib = " + std::to_string(machine_.scratchpad.kib) +
                         ", accumulator.kib = " + std::to_string(machine_.accumulator.kib) + ": " +
                         group + " (" + std::to_string(problem.m) + " x " +
                         std::to_string(problem.n) + " x " + std::to_string(problem.k) +
                         ") does not fit, not even in the smallest tiles");
  }
  return known_.emplace(problem.key(), *tiling).first->second;
}

}  // namespace systole::mapper

#include "mapper/tile/tiling.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/round.h"
#include "base/units.h"
#include "hw/description/machine_text.h"
#include "hw/energy.h"
#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program.h"
#include "mapper/tile/tiling_energy.h"
#include "mapper/tile/tiling_strategies.h"

namespace systole::mapper {
DmaRate dma_rate(const hw::Machine& machine, std::uint32_t outstanding) {
  const double core = machine.core.clock_mhz;
  const double bus = hw::port_rate(machine) * machine.bus.clock_mhz / core;
  const double memory = hw::memory_rate(machine) / core;
  const auto bus_ns = [&](double cycles) { return cycles * 1000.0 / machine.bus.clock_mhz; };
  const double trip_ns =
      bus_ns(machine.bus.request_latency + machine.bus.response_latency + hw::mesh_trip(machine));
  const double latency_ns = hw::has_fixed_memory(machine)
                                ? trip_ns + bus_ns(machine.memory.latency)
                                : trip_ns + machine.dram.controller_ns + machine.dram.t_cl_ns;
  const double opened_ns =
      hw::has_fixed_memory(machine) ? 0.0 : machine.dram.t_rp_ns + machine.dram.t_rcd_ns;
  return {std::min(bus, memory), latency_ns * core / 1000.0 / outstanding,
          opened_ns * core / 1000.0 / outstanding};
}

namespace {

/// Per element, of all tensor operands together.
std::uint32_t tensor_bytes(const BoundChain& chain) {
  std::size_t bytes = 0;
  for (const hw::DType type : hw::tensor_types(chain.chain)) bytes += hw::bytes_of(type);
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

bool same_tiles(const Tiling& a, const Tiling& b) {
  const auto all = [](const Tiling& t) {
    return std::make_tuple(t.m, t.n, t.k, t.c_cols, t.m_outer, t.k_outer, t.a_stays, t.b_stays,
                           t.double_buffered, t.two_results, t.far_ahead, t.spread, t.banks_apart,
                           t.in_parts, t.back_and_forth);
  };
  return all(a) == all(b);
}

namespace {

/// Columns of C tiles by whole sections: as few folds as there can be, in tiles as narrow as that
/// allows, so that what the next head reads comes between the tiles of this one.
std::uint32_t section_tile(const TilingProblem& problem, std::uint32_t array_cols) {
  std::uint32_t best = problem.n;
  std::uint64_t fewest = ceil_div(problem.n, array_cols);
  for (std::uint32_t cols = problem.n; cols >= problem.out_section; cols -= problem.out_section) {
    if (problem.n % cols != 0) continue;
    const std::uint64_t folds = problem.n / cols * ceil_div(cols, array_cols);
    if (folds > fewest) continue;
    fewest = folds;
    best = cols;
  }
  return best;
}

}  // namespace

TilingProblem tiling_problem(const model::Graph& graph, const Group& group,
                             const Placement& placement, const hw::Machine& machine,
                             const Share& share) {
  const auto on_chip = [&](const model::View& view) {
    return placement.tensors[view.tensor].place == Location::Place::kScratchpad;
  };
  TilingProblem problem;
  problem.m = group.m();
  problem.n = group.n();
  problem.k = group.k();
  // A causal mask counts columns from the row's begin.
  problem.row_wise = hw::is_row_wise(group.chain) || group.valid_cols != 0;
  problem.even_cols = hw::has_stage(group.chain, hw::StageOp::kRope);
  if (group.matmul() != nullptr) {
    problem.a_on_chip = on_chip(group.a);
    problem.b_on_chip = on_chip(group.matmul()->b);
    problem.b_transposed = group.matmul()->b_transposed;
    problem.b_is_activation =
        graph.tensors[group.matmul()->b.tensor].kind != model::Tensor::Kind::kConstant;
    if (is_packed(graph, group.matmul()->b, machine)) {
      problem.b_format = graph.tensors[group.matmul()->b.tensor].format;
    }
    problem.int4 = {placement.tensors[group.a.tensor].int4,
                    is_int4(graph, group.matmul()->b, machine)};
  }
  problem.out_int4 = placement.tensors[group.written().tensor].int4;
  problem.out_on_chip = on_chip(group.out);
  problem.out_section = placement.tensors[group.out.tensor].section;
  problem.parameter_words = hw::parameter_words(group.chain);
  problem.out_bytes = static_cast<std::uint32_t>(hw::bytes_of(group.chain.out));
  problem.tensor_bytes = tensor_bytes(group);
  if (group.pre) {
    problem.a_bytes = static_cast<std::uint32_t>(hw::bytes_of(graph.tensors[group.a.tensor].type));
    problem.pre_words = hw::parameter_words(group.pre->chain);
    problem.pre_tensor_bytes = tensor_bytes(*group.pre);
    problem.pre_stages = static_cast<std::uint32_t>(group.pre->chain.stages.size());
    const hw::ChainCycles stages =
        hw::chain_cycles(group.pre->chain, 1, machine.preop.lanes, machine.preop.lanes);
    problem.pre_interval = stages.per_row;
    problem.pre_fill = stages.fill;
    problem.even_cols |= hw::has_stage(group.pre->chain, hw::StageOp::kRope);
  }
  // How long the rows of other chains are depends on the tiles: one vector here.
  const std::uint32_t cols = problem.row_wise ? problem.n : machine.result_lanes();
  const hw::ChainCycles postop = hw::chain_cycles(group.chain, 1, cols, machine.result_lanes());
  problem.postop_interval = postop.per_row;
  problem.postop_fill = postop.fill;
  problem.postop_passes = postop.reads / ceil_div(cols, machine.result_lanes());
  problem.stages = static_cast<std::uint32_t>(group.chain.stages.size());
  if (group.matmul() == nullptr) {
    problem.in_bytes = static_cast<std::uint32_t>(hw::bytes_of(graph.tensors[group.a.tensor].type));
  }
  problem.window = group.window;
  if (group.window) {
    // A row of the window, where nothing is between its pixels.
    const bool dense = group.a.cols == graph.tensors[group.a.tensor].cols;
    problem.window_run = group.window->channels * (dense ? group.window->kernel_cols : 1U);
    if (group.matmul() == nullptr) {
      problem.in_bytes *= static_cast<std::uint32_t>(group.window->pixels());
    }
  }
  problem.section = group.section_cols();
  if (problem.out_section != 0) problem.section = section_tile(problem, machine.array.cols);
  for (const HeadMixLayer& encoder : group.sections.encoders) {
    const std::uint64_t interval =
        hw::mix_interval(encoder.mix, encoder.features(), machine.attention.encoder_lines,
                         machine.attention.macs_per_line);
    problem.postop_interval = std::max(problem.postop_interval, interval);
  }
  problem.stream_bytes = share.stream_end - share.stream_begin;
  const std::uint64_t bank = machine.scratchpad.bank_bytes();
  const std::uint64_t first_bank = round_up(share.stream_begin, bank);
  if (first_bank < share.stream_end) {
    problem.before_banks = first_bank - share.stream_begin;
    problem.free_banks = (share.stream_end - first_bank) / bank;
  }
  problem.sums = share.sums_end - share.sums_begin;
  problem.in_turns = share.in_turns;
  problem.row_tile = share.row_tile;
  problem.by_rows = share.row_tile != 0;
  return problem;
}

std::uint32_t k_unit(const TilingProblem& problem, const hw::Machine& machine) {
  const std::uint32_t rows = machine.array.rows * problem.int4.macs();
  return problem.b_packed() ? std::lcm(rows, hw::kGroupWeights) : rows;
}

namespace {

std::vector<Tiling> tilings_of(const hw::Machine& machine, const TilingProblem& problem,
                               Wanted wanted) {
  switch (machine.mapper.strategy) {
    case hw::MappingStrategy::kCost:
      return cost_tilings(machine, problem, wanted);
    case hw::MappingStrategy::kGemmini:
      return gemmini_tilings(machine, problem);
    case hw::MappingStrategy::kSearch:
      return search_tilings(machine, problem);
  }
  return {};
}

/// "scratchpad.kib = 4: norm1 (40 x 528 x 0) needs 5 KiB in its smallest tiles, 4 are free;
/// --set scratchpad.kib=8"; of the first memory that is too small by itself.
std::string too_small(const hw::Machine& machine, const TilingProblem& problem,
                      const std::string& group) {
  const bool gemmini = machine.mapper.strategy == hw::MappingStrategy::kGemmini;
  const SmallestTiles least =
      gemmini ? smallest_gemmini_tiles(machine, problem) : smallest_tiles(machine, problem);
  // Tensors may take the other half of a larger scratchpad.
  const bool shared = machine.mapper.on_chip != 0 && !gemmini;
  constexpr std::uint64_t kHalves = 2, kBytesOfSum = 4;
  struct Memory {
    const char* key;
    std::uint32_t kib;
    std::uint64_t needed, left, size;  ///< bytes; of the memory in which it surely fits
  };
  const std::uint64_t sums = kBytesOfSum * problem.sums * (problem.in_turns ? 1 : kHalves);
  const std::array<Memory, 3> memories = {
      {{"scratchpad.kib", machine.scratchpad.kib, least.scratchpad, problem.stream_bytes,
        least.scratchpad * (shared ? kHalves : 1)},
       {"accumulator.kib", machine.accumulator.kib, least.accumulator, sums, least.accumulator},
       {"postop.operand_kib", machine.postop.operand_kib, least.operands,
        machine.postop.operand_kib * hw::kKib, least.operands}}};
  const std::string what = ": " + group + " (" + std::to_string(problem.m) + " x " +
                           std::to_string(problem.n) + " x " + std::to_string(problem.k) + ") ";
  for (const Memory& memory : memories) {
    if (memory.needed <= memory.left) continue;
    return memory.key + (" = " + std::to_string(memory.kib)) + what + "needs " +
           std::to_string(ceil_div(memory.needed, hw::kKib)) + " KiB in its smallest tiles, " +
           std::to_string(memory.left / hw::kKib) + " are free" +
           hw::memory_advice(memory.key, ceil_div(memory.size, hw::kKib));
  }
  return "scratchpad.kib = " + std::to_string(machine.scratchpad.kib) +
         ", accumulator.kib = " + std::to_string(machine.accumulator.kib) + what +
         "does not fit both at once in any tiles";
}

}  // namespace

const std::vector<Tiling>& Tiler::candidates(const TilingProblem& problem,
                                             const std::string& group) {
  const std::vector<Tiling>& all = tilings(problem);
  if (all.empty()) throw hw::InputError(too_small(machine_, problem, group));
  return all;
}

const std::vector<Tiling>& Tiler::tilings(const TilingProblem& problem) {
  if (const auto found = known_.find(problem.key()); found != known_.end()) {
    found->second.asked = step_;
    return found->second.tilings;
  }
  // What follows from sizes is computed once, not for each tiling.
  hw::Machine priced = machine_;
  priced.energy = hw::energy_table(machine_);
  std::vector<Tiling> all = tilings_of(priced, problem, wanted_);
  for (Tiling& tiling : all) tiling.energy = tiling_energy(priced, problem, tiling);
  return known_.emplace(problem.key(), Known{std::move(all), step_}).first->second.tilings;
}

void Tiler::forget_unused(std::uint64_t steps) {
  ++step_;
  for (auto at = known_.begin(); at != known_.end();) {
    at = at->second.asked + steps < step_ ? known_.erase(at) : std::next(at);
  }
}

}  // namespace systole::mapper

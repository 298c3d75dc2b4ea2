#include "analysis/dataflow.h"

#include <utility>
#include <vector>

#include "hw/energy.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/tiling.h"

namespace systole::analysis {
namespace {

std::size_t index(Operand operand) { return static_cast<std::size_t>(operand); }

/// The loops inside of a tile.
std::vector<Loop> chip_loops(Stationary stationary, std::uint64_t rows, std::uint64_t cols) {
  constexpr Level kBuffer = Level::kBuffer, kSpatial = Level::kSpatial;
  switch (stationary) {
    case Stationary::kOutput:
      return {{Dim::kM, rows, kBuffer},
              {Dim::kN, cols, kBuffer},
              {Dim::kK, 1, kBuffer},
              {Dim::kM, 1, kSpatial},
              {Dim::kN, 1, kSpatial}};
    case Stationary::kRow:
      return {{Dim::kM, cols, kBuffer}, {Dim::kK, rows * kRowSegment, kBuffer},
              {Dim::kN, 1, kBuffer},    {Dim::kK, kRowSegment, kSpatial},
              {Dim::kM, 1, kSpatial},   {Dim::kK, 1, Level::kRegister}};
    default:
      return {{Dim::kN, cols, kBuffer},
              {Dim::kK, rows, kBuffer},
              {Dim::kM, 1, kBuffer},
              {Dim::kK, 1, kSpatial},
              {Dim::kN, 1, kSpatial}};
  }
}

/// By Operand: PEs have registers for it.
std::array<bool, kOperands> registers_of(Stationary stationary) {
  switch (stationary) {
    case Stationary::kWeight:
      return {false, true, false};
    case Stationary::kOutput:
      return {false, false, true};
    case Stationary::kRow:
      return {true, true, true};
    default:
      return {false, false, false};
  }
}

/// By Operand: what stays in the registers from cycle to cycle of the buffers.
std::array<bool, kOperands> held_by(Stationary stationary) {
  if (stationary == Stationary::kRow) return {true, false, false};
  return registers_of(stationary);
}

}  // namespace

std::string_view short_name(Stationary stationary) {
  constexpr std::array<std::string_view, 4> kNames = {"ws", "os", "rs", "nlr"};
  return kNames.at(static_cast<std::size_t>(stationary));
}

std::string_view long_name(Stationary stationary) {
  constexpr std::array<std::string_view, 4> kNames = {"weight-stationary", "output-stationary",
                                                      "row-stationary", "no local reuse"};
  return kNames.at(static_cast<std::size_t>(stationary));
}

DramTiles mapper_tiles(const ProductShape& shape, const hw::Machine& machine) {
  mapper::TilingProblem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.out_bytes = 1;
  problem.postop_interval = 1;
  const mapper::Share whole = mapper::whole_share(machine);
  problem.stream_bytes = whole.stream_end;
  problem.sums = whole.sums_end;
  const mapper::Tiling tiling = mapper::Tiler(machine).choose(problem, "the product");
  const Loop m{Dim::kM, tiling.m, Level::kDram}, n{Dim::kN, tiling.n, Level::kDram};
  const Loop k{Dim::kK, tiling.k, Level::kDram};
  const Loop cols{Dim::kN, tiling.c_cols, Level::kDram};
  std::vector<Loop> loops = tiling.m_outer ? std::vector{m, cols} : std::vector{cols, m};
  if (tiling.k_outer) {
    loops.push_back(k);
    loops.push_back(n);
  } else {
    if (tiling.n != tiling.c_cols) loops.push_back(n);
    loops.push_back(k);
  }
  return {std::move(loops), {tiling.a_loads == 1, tiling.b_loads == 1, false}};
}

LoopNest make_nest(Stationary stationary, const ProductShape& shape,
                   const hw::Machine::Array& array, DramTiles tiles) {
  LoopNest nest;
  nest.size = {shape.m, shape.n, shape.k};
  nest.loops = std::move(tiles.loops);
  nest.stays = tiles.stays;
  for (const Loop& loop : chip_loops(stationary, array.rows, array.cols)) {
    nest.loops.push_back(loop);
  }
  nest.held = held_by(stationary);
  return nest;
}

DataflowCost cost_of(Stationary stationary, LoopNest nest, const hw::Machine::Energy& energy) {
  DataflowCost cost;
  cost.operands = count_accesses(nest);
  cost.macs = nest.size[0] * nest.size[1] * nest.size[2];
  cost.nest = std::move(nest);
  const std::array<bool, kOperands> registers = registers_of(stationary);
  for (std::size_t i = 0; i < kOperands; ++i) {
    if (!registers[i]) continue;
    const std::uint64_t per_mac = i == index(Operand::kC) ? 2 : 1;
    cost.register_accesses += cost.operands[i].register_fills + per_mac * cost.macs;
  }
  const OperandAccesses& a = cost.operands[index(Operand::kA)];
  const OperandAccesses& b = cost.operands[index(Operand::kB)];
  const OperandAccesses& c = cost.operands[index(Operand::kC)];
  cost.scratchpad_reads = a.buffer + b.buffer;
  cost.scratchpad_writes = a.dram_tiles + b.dram_tiles;
  cost.accumulator_writes = c.buffer;
  // All visits but the first read the sum, and in the end the post-op unit does.
  cost.accumulator_reads = c.buffer;
  cost.dram_reads = a.dram_tiles + b.dram_tiles;
  cost.dram_writes = c.dram_tiles;

  hw::EnergyEvents events;
  events.macs = cost.macs;
  events.scratchpad_bytes = cost.scratchpad_reads + cost.scratchpad_writes;
  events.accumulator_bytes = 4 * (cost.accumulator_reads + cost.accumulator_writes);
  events.dram_bytes = cost.dram_reads + cost.dram_writes;
  const hw::EnergyReport report = hw::energy_of(events, energy);
  cost.mac_energy = report.mac;
  cost.scratchpad_energy = report.scratchpad;
  cost.accumulator_energy = report.accumulator;
  cost.dram_energy = report.dram;
  return cost;
}

}  // namespace systole::analysis

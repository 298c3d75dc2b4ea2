#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "mapper/fuse/fusion.h"
#include "mapper/place/placement.h"
#include "mapper/tile/tiling.h"
#include "model/graph/graph.h"

namespace systole::mapper {

struct Mapping {
  hw::Program program;
  std::uint64_t program_address = 0;
  hw::MemoryImage image;              ///< constants, and the encoded program
  std::uint64_t dram_bytes = 0;       ///< extent of all that lies in DRAM
  std::uint64_t constants_begin = 0;  ///< tensors lie before it, constants and program after it
  std::vector<Location> tensors;      ///< by TensorId; after the graph's are those of split_norms()
  std::vector<Group> groups;          ///< one per operator of the program, in order
  std::vector<Tiling> tilings;        ///< by group
  std::vector<Share> shares;          ///< by group
  std::uint64_t expected_cycles = 0;  ///< of the whole program, by mapper/choose/plan_replay.h
  std::vector<FusionDecision> decisions;  ///< by node of the graph; empty for a step
};

/// Turns a graph into a program for a machine: fuses, places, tiles, emits. The program is the same
/// for the same graph and machine, whatever the host.
/// Throws InputError when the machine cannot run the graph (what is too small, and how large it
/// would have to be).
[[nodiscard]] Mapping map_graph(const model::Graph& graph, const hw::Machine& machine,
                                RowGaps gaps = RowGaps::kWeighed);

}  // namespace systole::mapper

#include "mapper/mapping.h"

#include <string>
#include <utility>

#include "hw/command_codec.h"
#include "hw/error.h"
#include "mapper/constant_image.h"
#include "mapper/emitter.h"
#include "mapper/round.h"

namespace systole::mapper {
Mapping map_graph(const model::Graph& graph, const hw::Machine& machine) {
  Mapping mapping;
  mapping.groups = fuse(graph, machine);
  Placement placement = place_tensors(graph, mapping.groups, machine);
  ConstantImage constants(placement.dram_end);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const model::Tensor& tensor = graph.tensors[id];
    const Location& location = placement.tensors[id];
    if (location.place != Location::Place::kDram || tensor.data.empty()) continue;
    constants.add_rows(location.address, tensor.data, tensor.bytes() / tensor.rows, location.pitch);
  }

  Tiler tiler(machine);
  Emitter emitter(graph, machine, placement, constants, mapping.program);
  for (const Group& group : mapping.groups) {
    const TilingProblem problem = tiling_problem(graph, group, placement, machine);
    mapping.tilings.push_back(tiler.choose(problem, group.name));
    emitter.emit(group, mapping.tilings.back());
  }
  mapping.program.commands.emplace_back();  // kEnd

  mapping.image = std::move(constants.pieces());
  mapping.program_address = round_up(constants.end(), 4096);
  hw::MemoryPiece code{mapping.program_address, hw::encode_commands(mapping.program.commands)};
  mapping.dram_bytes = code.address + code.bytes.size();
  mapping.image.push_back(std::move(code));
  mapping.tensors = std::move(placement.tensors);
  const std::uint64_t available = std::uint64_t{machine.dram.mib} << 20;
  if (mapping.dram_bytes > available) {
    throw hw::InputError("dram.mib = " + std::to_string(machine.dram.mib) + ": " + graph.name +
                         " needs " + std::to_string((mapping.dram_bytes >> 20) + 1) + " MiB");
  }
  hw::check_program(mapping.program, machine, available);
  return mapping;
}

}  // namespace systole::mapper

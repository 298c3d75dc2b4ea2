#include "mapper/emit_groups.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/round.h"
#include "base/units.h"
#include "hw/description/machine_text.h"
#include "hw/program/program_image.h"
#include "mapper/emit/emitter.h"
#include "mapper/place/constant_image.h"

namespace systole::mapper {
namespace {

/// What is expected of loads is what runs: the cost model counts tiles as if all were whole, and
/// finds less on chip than there may be by chance. Loops of an unroller and windows are left as
/// they are.
void count_loads(Mapping& mapping) {
  std::vector<std::uint64_t> bytes(mapping.groups.size(), 0);
  for (const hw::Command& command : mapping.program.commands) {
    const auto* const load = std::get_if<hw::cmd::Load>(&command.work);
    if (load == nullptr) continue;
    const hw::ReadRows read = hw::read_rows(*load);
    bytes.at(command.op) += read.rows * read.bytes;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const Group& group = mapping.groups[i];
    if (!group.is_tiled() || group.window || mapping.tilings[i].unrolled) continue;
    mapping.tilings[i].load_bytes = bytes[i];
  }
}

}  // namespace

Mapping emit_groups(const model::Graph& graph, const hw::Machine& machine,
                    std::vector<Group> groups, const std::vector<Pipeline>& pipelines,
                    Placement placement, PlanReplay expected, bool with_constants,
                    std::vector<hw::Command> room) {
  Mapping mapping;
  mapping.groups = std::move(groups);
  mapping.tilings = std::move(expected.tilings);
  mapping.expected_cycles = expected.cycles;
  mapping.constants_begin = placement.dram_end;
  ConstantImage constants(placement.dram_end, with_constants);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const model::Tensor& tensor = graph.tensors[id];
    const Location& location = placement.tensors[id];
    if (location.place != Location::Place::kDram || tensor.data.empty()) continue;
    constants.add_rows(location.address, tensor.data, tensor.bytes() / tensor.rows, location.pitch);
  }

  std::vector<std::vector<TiledGroup>> tiled;  // by pipeline; none where it has no tiles
  std::uint64_t expected_commands = 0;
  for (const Pipeline& pipeline : pipelines) {
    std::vector<TiledGroup>& of = tiled.emplace_back();
    if (!mapping.groups[pipeline.first].is_tiled()) continue;
    of = groups_of(pipeline, graph, machine, mapping.groups, placement);
    for (std::size_t i = 0; i < of.size(); ++i) {
      of[i].tiling = mapping.tilings[pipeline.first + i];
      expected_commands += of[i].commands();
    }
  }
  room.clear();
  if (room.capacity() == 0) room.reserve(expected_commands);
  mapping.program.commands = std::move(room);
  const EmitTarget to{graph, machine, placement, constants, mapping.program};
  Emitter emitter(to);
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    const Group& group = mapping.groups[pipelines[i].first];
    if (group.is_tiled()) {
      emitter.emit(pipelines[i], tiled[i]);
    } else {
      emit_whole(to, group);
    }
  }
  mapping.program.commands.emplace_back();  // kEnd
  count_loads(mapping);

  mapping.program_address = constants.program_address();
  mapping.image = std::move(constants).take();
  for (const hw::LayerMask& mask : mapping.program.masks) {
    mapping.image.push_back({mask.address, mask.bytes, true});
  }
  hw::MemoryPiece code{mapping.program_address, hw::encode_program(mapping.program), true};
  mapping.dram_bytes = code.address + code.bytes.size();
  mapping.image.push_back(std::move(code));
  mapping.tensors = std::move(placement.tensors);
  mapping.shares = std::move(placement.shares);
  require_room(mapping, machine, graph.name);
  hw::check_program(mapping.program, machine, std::uint64_t{machine.dram.mib} << 20);
  return mapping;
}

void require_room(const Mapping& mapping, const hw::Machine& machine, const std::string& network) {
  if (mapping.dram_bytes <= std::uint64_t{machine.dram.mib} << 20) return;
  const std::uint64_t mib = (mapping.dram_bytes + hw::kMib - 1) / hw::kMib;
  throw hw::InputError("dram.mib = " + std::to_string(machine.dram.mib) + ": " + network +
                       " needs " + std::to_string(mib) + " MiB" +
                       hw::memory_advice("dram.mib", mib));
}

}  // namespace systole::mapper

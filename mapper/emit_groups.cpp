#include "mapper/emit_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hw/attention_plan.h"
#include "hw/command_codec.h"
#include "hw/error.h"
#include "hw/machine_text.h"
#include "hw/units.h"
#include "mapper/constant_image.h"
#include "mapper/emitter.h"
#include "mapper/host_cost.h"
#include "mapper/replay.h"
#include "mapper/round.h"

namespace systole::mapper {
namespace {

/// What the engines are expected to do, as if memory never held them up.
Tiling attention_tiling(const AttentionGroup& group, const hw::Machine& machine) {
  const hw::AttentionPlan plan =
      hw::plan_attention(group.heads, group.dim, group.value_dim, machine,
                         group.decoders.empty() ? hw::BufferedRow::kHead : hw::BufferedRow::kToken);
  Tiling tiling;
  tiling.m = group.query.rows;
  tiling.n = tiling.c_cols = static_cast<std::uint32_t>(group.value_dim);
  tiling.k = static_cast<std::uint32_t>(group.dim);
  for (const hw::AttentionStep& step : plan.steps) tiling.cycles += step.phase.cycles;
  tiling.compute_cycles = tiling.cycles;
  const auto row_bytes = [&](hw::AttentionOperand operand) -> std::size_t {
    if (operand == hw::AttentionOperand::kValue) return group.value_dim;
    if (group.decoders.empty()) return group.dim;
    return operand == hw::AttentionOperand::kQuery ? group.query.cols : group.key.cols;
  };
  for (const hw::AttentionFetch& fetch : plan.fetches) {
    tiling.load_bytes += row_bytes(fetch.operand);
  }
  return tiling;
}

/// What the host is expected to take.
Tiling host_tiling(const Group& group, const hw::Machine& machine) {
  Tiling tiling;
  tiling.m = group.m();
  tiling.n = tiling.c_cols = group.n();
  const HostCost cost = host_cost(*group.host, group.m(), group.n(), machine);
  tiling.compute_cycles = static_cast<std::uint64_t>(cost.compute);
  tiling.cycles = static_cast<std::uint64_t>(cost.total());
  return tiling;
}

/// Cycles from the end of an operator to the end of the next, as a replay of the program expects
/// them: they add up to those of the whole program.
void expect_cycles(Replay& replay, Mapping& mapping) {
  replay.finish();
  std::uint64_t before = 0;
  for (std::size_t op = 0; op < mapping.tilings.size(); ++op) {
    const std::vector<std::uint64_t>& ends = replay.operator_ends();
    const std::uint64_t end = op < ends.size() ? std::max(ends[op], before) : before;
    mapping.tilings[op].cycles = end - before;
    before = end;
  }
  mapping.expected_cycles = replay.end();
}

}  // namespace

Mapping emit_groups(const model::Graph& graph, const hw::Machine& machine,
                    std::vector<Group> groups, const std::vector<Pipeline>& pipelines,
                    Placement placement, TilingChoice& choice, bool with_constants) {
  Mapping mapping;
  mapping.groups = std::move(groups);
  ConstantImage constants(placement.dram_end, with_constants);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const model::Tensor& tensor = graph.tensors[id];
    const Location& location = placement.tensors[id];
    if (location.place != Location::Place::kDram || tensor.data.empty()) continue;
    constants.add_rows(location.address, tensor.data, tensor.bytes() / tensor.rows, location.pitch);
  }

  Emitter emitter(graph, machine, placement, constants, mapping.program);
  Replay replay(machine);
  choice.begin();
  const auto replay_from = [&](std::size_t first) {
    replay.run(mapping.program, first, mapping.program.commands.size());
  };
  std::vector<TiledPipeline> tiled;
  for (const Pipeline& pipeline : pipelines) {
    tiled.push_back({&pipeline, {}});
    const Group& group = mapping.groups[pipeline.first];
    if (group.attention || group.host || group.encoder) continue;
    for (std::size_t i = pipeline.first; i < pipeline.end(); ++i) {
      const Group& next = mapping.groups[i];
      const Share& share = placement.shares[i];
      tiled.back().groups.push_back(
          {&next, {}, tiling_problem(graph, next, placement, machine, share), share});
    }
  }
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    const Pipeline& pipeline = pipelines[i];
    const Group& group = mapping.groups[pipeline.first];
    const std::size_t first = mapping.program.commands.size();
    if (group.attention) {
      mapping.tilings.push_back(attention_tiling(*group.attention, machine));
      emitter.emit_attention(group);
      replay.expect_attention(mapping.tilings.back().cycles);
      replay_from(first);
      continue;
    }
    if (group.host) {
      mapping.tilings.push_back(host_tiling(group, machine));
      emitter.emit_host(group);
      replay_from(first);
      continue;
    }
    if (group.encoder) {
      Tiling& tiling = mapping.tilings.emplace_back();
      tiling.m = group.m();
      tiling.n = tiling.c_cols = group.n();
      emitter.emit_encoder(group);
      continue;
    }
    choice.choose(tiled[i], i + 1 < tiled.size() ? &tiled[i + 1] : nullptr, emitter, replay);
    for (const TiledGroup& next : tiled[i].groups) mapping.tilings.push_back(next.tiling);
    emitter.emit(pipeline, tiled[i].groups);
    replay_from(first);
  }
  expect_cycles(replay, mapping);
  mapping.program.commands.emplace_back();  // kEnd

  mapping.image = std::move(constants.pieces());
  mapping.program_address = round_up(constants.end(), 4096);
  hw::MemoryPiece code{mapping.program_address, hw::encode_commands(mapping.program.commands)};
  mapping.dram_bytes = code.address + code.bytes.size();
  mapping.image.push_back(std::move(code));
  mapping.tensors = std::move(placement.tensors);
  mapping.shares = std::move(placement.shares);
  const std::uint64_t available = std::uint64_t{machine.dram.mib} << 20;
  if (mapping.dram_bytes > available) {
    const std::uint64_t mib = (mapping.dram_bytes + hw::kMib - 1) / hw::kMib;
    throw hw::InputError("dram.mib = " + std::to_string(machine.dram.mib) + ": " + graph.name +
                         " needs " + std::to_string(mib) + " MiB" +
                         hw::memory_advice("dram.mib", mib));
  }
  hw::check_program(mapping.program, machine, available);
  return mapping;
}

}  // namespace systole::mapper

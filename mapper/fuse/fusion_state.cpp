#include "mapper/fuse/fusion_state.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/round.h"
#include "base/units.h"
#include "mapper/group/fusion_rules.h"
#include "mapper/place/sharing.h"
#include "mapper/replay/attention_replay.h"
#include "mapper/tile/objective.h"

namespace systole::mapper {
namespace {

/// From row to row of a section of results, in the mean of those that are encoded and the rest.
std::uint64_t mean_interval(const Group& group, const hw::Machine& machine) {
  const std::uint32_t cols = group.section_cols();
  const std::uint64_t sections = group.out.cols / cols;
  const std::uint64_t plain =
      hw::chain_cycles(group.chain, 1, cols, machine.result_lanes()).per_row;
  std::uint64_t all = (sections - group.sections.encoders.size()) * plain;
  for (const HeadMixLayer& encoder : group.sections.encoders) {
    all += std::max(
        plain, hw::mix_interval(encoder.mix, encoder.features(), machine.attention.encoder_lines,
                                machine.attention.macs_per_line));
  }
  return ceil_div(all, sections);
}

}  // namespace

FusionCost::FusionCost(const model::Graph& graph, const hw::Machine& machine, Tiler& tiler)
    : graph_(graph), machine_(machine), tiler_(tiler) {
  placement_.tensors.resize(graph.tensors.size());
  placement_.shares = {whole_share(machine)};
}

std::optional<Tiling> FusionCost::tiling(Group group, const Placement& placement) {
  group.chain.out = graph_.tensors[group.out.tensor].type;
  TilingProblem problem =
      tiling_problem(graph_, group, placement, machine_, placement.shares.front());
  if (!group.sections.encoders.empty()) problem.postop_interval = mean_interval(group, machine_);
  try {
    return tiler_.choose(problem, group.name);
  } catch (const hw::InputError&) {
    return std::nullopt;
  }
}

Placement FusionCost::keeping(const model::View& between) const {
  Placement placement = placement_;
  const model::Tensor& tensor = graph_.tensors[between.tensor];
  const std::uint64_t bytes =
      std::uint64_t{tensor.rows} * operand_pitch(tensor.cols, machine_.array.rows);
  if (machine_.mapper.on_chip != 0 && hw::bytes_of(tensor.type) == 1 &&
      bytes <= machine_.scratchpad.kib * hw::kKib / 2) {
    placement.tensors[between.tensor].place = Location::Place::kScratchpad;
    placement.shares.front().stream_begin = bytes;
  }
  return placement;
}

FusionCost::Comparison FusionCost::compare(const Group& fused,
                                           const std::vector<const Group*>& apart,
                                           const Placement& when_apart, double extra_cycles) {
  Comparison result;
  const std::optional<Tiling> together = tiling(fused, placement_);
  result.fits = together.has_value();
  if (!together) return result;
  const auto value = [this](double cycles, double joules) {
    return objective_of(machine_.mapper, cycles, joules);
  };
  result.together = value(static_cast<double>(together->cycles), together->energy);
  double cycles = extra_cycles;
  double energy = 0;
  bool runs = true;  // what does not fit apart has to run together
  for (const Group* group : apart) {
    const std::optional<Tiling> part = tiling(*group, when_apart);
    runs = runs && part.has_value();
    if (!part) continue;
    cycles += static_cast<double>(part->cycles);
    energy += part->energy;
  }
  result.apart = runs ? value(cycles, energy) : result.together;
  return result;
}

FusionCost::Comparison FusionCost::after(const Group& fused, const Group& group,
                                         const Group& alone) {
  return compare(fused, {&group, &alone}, placement_, std::floor(hand_over()));
}

double FusionCost::hand_over() const {
  const std::uint32_t outstanding = machine_.dma.outstanding_reads;
  return 2 * dma_rate(machine_, outstanding).cycles_per_request * outstanding;
}

double FusionCost::pass_cycles(const Group& alone, bool on_chip) {
  const DmaRate rate = dma_rate(machine_, machine_.dma.outstanding_reads);
  // What stays on chip need not be written and read before the next one begins.
  const double latency = on_chip ? 0.0 : hand_over();
  // What a separate pass loads is no part of the tiler's memory time.
  const double bytes = static_cast<double>(std::uint64_t{alone.a.rows} * alone.a.cols *
                                           hw::bytes_of(graph_.tensors[alone.a.tensor].type));
  const double load = bytes / rate.bytes_per_cycle;
  const std::optional<Tiling> pass = tiling(alone, placement_);
  return latency + (pass ? std::max(load - static_cast<double>(pass->cycles), 0.0) : load);
}

FusionCost::Comparison FusionCost::before(const Group& fused, const Group& alone,
                                          const Group& group) {
  const Placement when_apart = keeping(group.a);
  const bool on_chip = when_apart.shares.front().stream_begin != 0;
  return compare(fused, {&alone, &group}, when_apart, pass_cycles(alone, on_chip));
}

FusionCost::Comparison FusionCost::before_attention(std::uint64_t stage_cycles,
                                                    const Group& alone) {
  Comparison result;
  result.fits = true;
  // The stages take the same energy both ways; the pass adds traffic.
  result.together = objective_of(machine_.mapper, static_cast<double>(stage_cycles), 0);
  const std::optional<Tiling> pass = tiling(alone, placement_);
  result.apart = pass ? objective_of(machine_.mapper,
                                     static_cast<double>(pass->cycles) + pass_cycles(alone, false),
                                     pass->energy)
                      : result.together;
  return result;
}

FusionCost::Comparison FusionCost::encoding(const Group& fused, const Group& group,
                                            const std::vector<Group>& products) {
  std::vector<const Group*> apart{&group};
  for (const Group& product : products) apart.push_back(&product);
  return compare(fused, apart, placement_, hand_over());
}

FusionCost::Comparison FusionCost::decoding(const AttentionGroup& together,
                                            const AttentionGroup& apart,
                                            const std::vector<Group>& products) {
  Comparison result;
  result.fits = true;
  result.together = static_cast<double>(replay_attention(together, machine_));
  result.apart = static_cast<double>(replay_attention(apart, machine_)) + hand_over();
  for (const Group& product : products) {
    const std::optional<Tiling> part = tiling(product, placement_);
    if (!part) {
      result.apart = result.together;
      return result;
    }
    result.apart += static_cast<double>(part->cycles);
  }
  return result;
}

FusionState::FusionState(const model::Graph& network, const hw::Machine& target, Tiler& tiler)
    : graph(network),
      machine(target),
      readers(count_readers(network)),
      cost(network, target, tiler),
      why(network.nodes.size()) {}

std::string FusionState::reason(const FusionCost::Comparison& comparison) const {
  if (!comparison.fits) return "no tile fits together";
  const auto text = [](double value) { return std::to_string(std::llround(value)); };
  if (machine.mapper.strategy == hw::MappingStrategy::kSearch &&
      machine.mapper.objective != hw::MappingObjective::kCycles) {
    return "expected at " + text(100 * comparison.together / comparison.apart) +
           " % of the cost apart";
  }
  return "expected " + text(comparison.together) + " cycles together, " + text(comparison.apart) +
         " apart";
}

std::string FusionState::memory_obstacle(model::TensorId id) const {
  const model::Tensor& tensor = graph.tensors[id];
  const bool passes = tensor.kind == model::Tensor::Kind::kActivation && tensor.data.empty();
  return passes ? "" : tensor.name + " is wanted in memory";
}

}  // namespace systole::mapper

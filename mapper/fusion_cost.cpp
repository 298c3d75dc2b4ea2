#include "mapper/fusion_cost.h"

#include "hw/error.h"
#include "mapper/objective.h"

namespace systole::mapper {

FusionCost::FusionCost(const model::Graph& graph, const hw::Machine& machine)
    : graph_(graph), machine_(machine), tiler_(machine) {
  placement_.tensors.resize(graph.tensors.size());
}

std::optional<Tiling> FusionCost::tiling(Group group) {
  group.chain.out = graph_.tensors[group.out.tensor].type;
  try {
    return tiler_.choose(tiling_problem(graph_, group, placement_, machine_), group.name);
  } catch (const hw::InputError&) {
    return std::nullopt;
  }
}

FusionCost::Comparison FusionCost::compare(const Group& fused,
                                           const std::vector<const Group*>& apart,
                                           double extra_cycles) {
  Comparison result;
  const std::optional<Tiling> together = tiling(fused);
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
    const std::optional<Tiling> part = tiling(*group);
    runs = runs && part.has_value();
    if (!part) continue;
    cycles += static_cast<double>(part->cycles);
    energy += part->energy;
  }
  result.apart = runs ? value(cycles, energy) : result.together;
  return result;
}

FusionCost::Comparison FusionCost::behind(const Group& fused, const Group& group,
                                          const Group& alone) {
  // The second pass waits for the first one's last write, and then for its own first read.
  const std::uint32_t outstanding = machine_.dma.outstanding_reads;
  const double latency = dma_rate(machine_, outstanding).cycles_per_request * outstanding;
  return compare(fused, {&group, &alone},
                 static_cast<double>(static_cast<std::uint64_t>(2 * latency)));
}

FusionCost::Comparison FusionCost::before(const Group& fused, const Group& alone,
                                          const Group& group) {
  const std::uint32_t outstanding = machine_.dma.outstanding_reads;
  const DmaRate rate = dma_rate(machine_, outstanding);
  const double latency = rate.cycles_per_request * outstanding;
  // What a pass of its own loads is no part of the tiler's memory time.
  const double bytes = static_cast<double>(std::uint64_t{alone.a.rows} * alone.a.cols *
                                           hw::bytes_of(graph_.tensors[alone.a.tensor].type));
  return compare(fused, {&alone, &group}, 2 * latency + bytes / rate.bytes_per_cycle);
}

FusionCost::Comparison FusionCost::encoding(const Group& fused, const Group& group,
                                            const std::vector<Group>& products) {
  std::vector<const Group*> apart{&group};
  for (const Group& product : products) apart.push_back(&product);
  return compare(fused, apart, 0);
}

}  // namespace systole::mapper

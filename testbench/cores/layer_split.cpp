#include "testbench/cores/layer_split.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "mapper/relocation.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

using model::Graph;
using model::kNoTensor;
using model::Node;
using model::Tensor;
using model::TensorId;

/// Calls visit(tensor) for what a node reads from memory.
template <typename Visit>
void visit_read(const Node& node, Visit visit) {
  visit(node.in.tensor);
  visit(node.second().tensor);
  visit(node.statistics());
}

struct Life {
  std::size_t first_write = std::numeric_limits<std::size_t>::max(), last_write = 0, last_read = 0;
  bool written = false, read = false;
};

std::vector<Life> lives_of(const Graph& graph) {
  std::vector<Life> lives(graph.tensors.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    visit_read(graph.nodes[i], [&](TensorId tensor) {
      if (tensor == kNoTensor) return;
      lives[tensor].read = true;
      lives[tensor].last_read = i;
    });
    // A stage may leave row statistics.
    for (const TensorId tensor : {graph.nodes[i].out.tensor, graph.nodes[i].statistics()}) {
      if (tensor == kNoTensor) continue;
      Life& life = lives[tensor];
      life.first_write = std::min(life.first_write, i);
      life.last_write = i;
      life.written = true;
    }
  }
  return lives;
}

bool is_activation(const Tensor& tensor) {
  return tensor.kind == Tensor::Kind::kActivation && tensor.data.empty();
}

/// The tensor that alone crosses before node `at`, or none.
TensorId crossing(const Graph& graph, const std::vector<Life>& lives, std::size_t at) {
  TensorId found = kNoTensor;
  for (TensorId id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    const Life& life = lives[id];
    if (!life.read || life.last_read < at || tensor.kind == Tensor::Kind::kConstant) continue;
    const bool before = life.written && life.first_write < at;
    if (tensor.kind == Tensor::Kind::kActivation && life.written && !before) continue;
    // Inputs, states and rows that never change belong to where they are read first.
    if (!before || !is_activation(tensor) || life.last_write >= at || found != kNoTensor) {
      return kNoTensor;
    }
    found = id;
  }
  return found;
}

/// Cycles of a node if nothing else went on: to balance stages.
double node_cost(const Node& node, const hw::Machine& machine) {
  const double elements = static_cast<double>(node.out.rows) * node.out.cols;
  if (node.product() == nullptr) return elements / machine.result_lanes();
  const double macs = elements * node.in.cols;
  const double weights = static_cast<double>(node.product()->b.rows) * node.product()->b.cols;
  return std::max(macs / (static_cast<double>(machine.array.rows) * machine.array.cols),
                  weights / machine.bus.width_bytes);
}

/// A network cut in stages, one per core.
class Stages {
 public:
  Stages(const hw::CoreSystem& system, const Graph& graph)
      : system_(system), graph_(graph), cuts_(cuts_of(graph)) {
    const std::size_t count = system.cores.size();
    if (cuts_.size() + 1 < count) {
      throw hw::InputError("--split layers: " + graph.name + " can be cut in at most " +
                           std::to_string(cuts_.size() + 1) + " stages, found " +
                           std::to_string(count) + " cores");
    }
    cuts_.insert(cuts_.begin(), 0);
    cuts_.push_back(graph.nodes.size());
    balance();
    give_away();
    refine();
  }

  [[nodiscard]] std::size_t begin(std::size_t stage) const { return cuts_[at_[stage]]; }
  [[nodiscard]] std::size_t end(std::size_t stage) const { return cuts_[at_[stage + 1]]; }
  [[nodiscard]] const std::shared_ptr<const mapper::Mapping>& mapping(std::size_t stage) {
    return map(stage, at_[stage], at_[stage + 1]).mapping;
  }
  [[nodiscard]] const SubGraph& part(std::size_t stage) {
    return map(stage, at_[stage], at_[stage + 1]).part;
  }

 private:
  struct Mapped {
    SubGraph part;
    std::shared_ptr<const mapper::Mapping> mapping;
  };

  /// The cuts that make the most expensive stage the cheapest.
  void balance() {
    const std::size_t stages = system_.cores.size(), ends = cuts_.size();
    std::vector<std::vector<double>> sums;  // by core: costs before each cut
    for (const hw::CoreSite& core : system_.cores) {
      std::vector<double>& sum = sums.emplace_back(ends, 0.0);
      for (std::size_t cut = 1; cut < ends; ++cut) {
        sum[cut] = sum[cut - 1];
        for (std::size_t i = cuts_[cut - 1]; i < cuts_[cut]; ++i) {
          sum[cut] += node_cost(graph_.nodes[i], core.machine);
        }
      }
    }
    constexpr double kUnreached = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> best(stages + 1, std::vector<double>(ends, kUnreached));
    std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(ends, 0));
    best[0][0] = 0.0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      for (std::size_t end = stage + 1; end < ends; ++end) {
        for (std::size_t begin = stage; begin < end; ++begin) {
          const double longest =
              std::max(best[stage][begin], sums[stage][end] - sums[stage][begin]);
          if (longest >= best[stage + 1][end]) continue;
          best[stage + 1][end] = longest;
          from[stage + 1][end] = begin;
        }
      }
    }
    at_.assign(stages + 1, ends - 1);
    for (std::size_t stage = stages; stage > 0; --stage) at_[stage - 1] = from[stage][at_[stage]];
  }

  /// The longest stage and how long it is.
  std::pair<std::uint64_t, std::size_t> longest_stage() {
    std::pair<std::uint64_t, std::size_t> longest{0, 0};
    for (std::size_t stage = 0; stage < system_.cores.size(); ++stage) {
      const std::uint64_t cycles = expected(stage, at_[stage], at_[stage + 1]);
      if (cycles > longest.first) longest = {cycles, stage};
    }
    return longest;
  }

  /// The longest stage gives its first part to the core before, or its last to the one after, while
  /// the mapper expects that one to stay shorter.
  void give_away() {
    for (;;) {
      const auto [longest, where] = longest_stage();
      if (at_[where + 1] - at_[where] < 2) return;
      if (where > 0 && expected(where - 1, at_[where - 1], at_[where] + 1) < longest) {
        ++at_[where];
      } else if (where + 1 < system_.cores.size() &&
                 expected(where + 1, at_[where + 1] - 1, at_[where + 2]) < longest) {
        --at_[where + 1];
      } else {
        return;
      }
    }
  }

  /// Moves cuts of the longest stage one by one, either way, while both stages beside the cut
  /// become shorter than that: more parts may fuse to less. There are fewer longest stages, or
  /// shorter ones, with each move.
  void refine() {
    for (;;) {
      const auto [longest, where] = longest_stage();
      std::uint64_t best_longer = longest;
      std::vector<std::size_t> best;
      for (const std::size_t cut : {where, where + 1}) {
        if (cut == 0 || cut == system_.cores.size()) continue;
        for (const bool later : {cut == where, cut != where}) {  // less for it first
          std::vector<std::size_t> moved = at_;
          later ? ++moved[cut] : --moved[cut];
          if (moved[cut] == moved[cut - 1] || moved[cut] == moved[cut + 1]) continue;
          const std::uint64_t longer = std::max(expected(cut - 1, moved[cut - 1], moved[cut]),
                                                expected(cut, moved[cut], moved[cut + 1]));
          if (longer >= best_longer) continue;
          best_longer = longer;
          best = std::move(moved);
        }
      }
      if (best.empty()) return;
      at_ = std::move(best);
    }
  }

  /// In picoseconds: clocks differ.
  std::uint64_t expected(std::size_t stage, std::size_t begin, std::size_t end) {
    const std::uint64_t cycles = map(stage, begin, end).mapping->expected_cycles;
    return cycles * 1'000'000 / system_.cores[stage].machine.core.clock_mhz;
  }

  const Mapped& map(std::size_t stage, std::size_t begin, std::size_t end) {
    std::size_t like = 0;
    const hw::Machine& machine = system_.cores[stage].machine;
    while (!hw::same_keys(system_.cores[like].machine, machine)) ++like;
    Mapped& mapped = mapped_[{like, begin, end}];
    if (!mapped.mapping) {
      mapped.part = sub_graph(graph_, cuts_[begin], cuts_[end]);
      mapped.mapping = std::make_shared<mapper::Mapping>(mapper::map_graph(
          *mapped.part.graph, hw::mapped_machine(system_, stage), mapper::RowGaps::kNone));
    }
    return mapped;
  }

  const hw::CoreSystem& system_;
  const Graph& graph_;
  std::vector<std::size_t> cuts_;  ///< with begin and end
  std::vector<std::size_t> at_;    ///< in `cuts_`: where each stage begins, and the end
  std::map<std::array<std::size_t, 3>, Mapped> mapped_;  ///< by core and cuts
};

}  // namespace

std::vector<std::size_t> cuts_of(const Graph& graph) {
  const std::vector<Life> lives = lives_of(graph);
  std::vector<std::size_t> cuts;
  for (std::size_t at = 1; at < graph.nodes.size(); ++at) {
    if (crossing(graph, lives, at) != kNoTensor) cuts.push_back(at);
  }
  return cuts;
}

SubGraph sub_graph(const Graph& graph, std::size_t begin, std::size_t end) {
  const std::vector<Life> lives = lives_of(graph);
  auto part = std::make_shared<Graph>();
  part->name = graph.name;
  SubGraph result;
  std::map<TensorId, TensorId> ids;
  const TensorId in = begin == 0 ? kNoTensor : crossing(graph, lives, begin);
  const TensorId out = end == graph.nodes.size() ? kNoTensor : crossing(graph, lives, end);
  const auto take = [&](TensorId& tensor) {
    if (tensor == kNoTensor) return;
    const auto [entry, added] =
        ids.try_emplace(tensor, static_cast<TensorId>(part->tensors.size()));
    if (added) {
      part->tensors.push_back(graph.tensors[tensor]);
      result.origins.push_back({tensor, {}, 0, 1});
      if (tensor == in) {
        part->tensors.back().kind = Tensor::Kind::kInput;
        part->tensors.back().int4 = false;  // it comes as it left the part before
      }
      if (tensor == out) part->tensors.back().kind = Tensor::Kind::kOutput;
    }
    tensor = entry->second;
  };
  for (std::size_t i = begin; i < end; ++i) {
    Node node = graph.nodes[i];
    take(node.in.tensor);
    if (auto* const product = node.product()) take(product->b.tensor);
    if (auto* const stage = node.stage()) {
      take(stage->tensor.tensor);
      take(stage->statistics);
    }
    if (auto* const host = node.host()) take(host->tensor.tensor);
    take(node.out.tensor);
    part->nodes.push_back(std::move(node));
  }
  result.graph = std::move(part);
  return result;
}

CorePlan plan_layers(const hw::CoreSystem& system, std::shared_ptr<const Graph> graph,
                     std::size_t inferences) {
  CorePlan plan{system, Split::kLayers, graph, {}, {}, {}};
  const std::size_t count = system.cores.size();
  const std::uint64_t memory = hw::memory_of_tiles(system);
  Stages stages(system, *graph);
  std::uint64_t end = 0;
  const auto take = [&end](std::uint64_t bytes) {
    const std::uint64_t at = end;
    end = round_up(end + bytes, mapper::kRelocationAlignment);
    return at;
  };
  // What crosses to the next stage has two buffers.
  std::vector<std::array<std::uint64_t, 2>> buffers(count);
  for (std::size_t stage = 0; stage + 1 < count; ++stage) {
    const auto place_at = [&](std::size_t of, TensorId (*tensor)(const Graph&)) {
      const Graph& part = *stages.part(of).graph;
      return mapper::place_of(part, *stages.mapping(of), tensor(part));
    };
    const mapper::TensorPlace from = place_at(stage, output_tensor);
    const mapper::TensorPlace to = place_at(stage + 1, input_tensor);
    if (from.pitch != to.pitch) {
      throw hw::InputError("--split layers: rows of " + from.name + " are " +
                           std::to_string(from.pitch) + " bytes apart for " +
                           system.cores[stage].name + " and " + std::to_string(to.pitch) + " for " +
                           system.cores[stage + 1].name + ", expected equal cores");
    }
    for (std::uint64_t& buffer : buffers[stage]) {
      buffer = take(std::uint64_t{from.pitch} * from.rows);
    }
  }
  std::vector<std::array<std::size_t, 2>> programs(count);
  for (std::size_t stage = 0; stage < count; ++stage) {
    const SubGraph part = stages.part(stage);
    const mapper::Mapping& mapping = *stages.mapping(stage);
    const std::uint64_t base = take(mapping.program_address);
    const std::size_t variants = count == 1 ? 1 : 2;
    for (std::size_t variant = 0; variant < variants; ++variant) {
      mapper::Relocation to{base, base, end, variant == 0, {}};
      const TensorId in = input_tensor(*part.graph), out = output_tensor(*part.graph);
      if (stage != 0) {
        to.moved.push_back({in, part.graph->tensors[in].rows, buffers[stage - 1][variant]});
      }
      if (stage + 1 != count) {
        to.moved.push_back({out, part.graph->tensors[out].rows, buffers[stage][variant]});
      }
      auto moved = std::make_shared<mapper::Mapping>(
          mapper::relocated(mapping, to, system.cores[stage].machine, memory));
      take(moved->dram_bytes - end);
      programs[stage][variant] = plan.programs.size();
      CoreProgram program{stage, part.graph, moved, part.origins, {}, {}, 0};
      if (stage == 0) program.input = mapper::place_of(*part.graph, *moved, in);
      if (stage + 1 == count) program.output = mapper::place_of(*part.graph, *moved, out);
      plan.programs.push_back(std::move(program));
    }
    if (variants == 1) programs[stage][1] = programs[stage][0];
  }
  for (std::size_t i = 0; i < inferences; ++i) {
    for (std::size_t stage = 0; stage < count; ++stage) {
      CoreTask task{i, programs[stage][i % 2], {}};
      if (stage > 0) task.after.push_back(i * count + stage - 1);
      // The buffer that it writes has been read.
      if (stage + 1 < count && i >= 2) task.after.push_back((i - 2) * count + stage + 1);
      plan.tasks.push_back(std::move(task));
    }
  }
  return plan;
}

}  // namespace systole::testbench

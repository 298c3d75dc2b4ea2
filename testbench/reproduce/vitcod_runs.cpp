#include "testbench/reproduce/vitcod_runs.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "mapper/mapping.h"
#include "model/global_columns.h"
#include "model/graph_builder.h"
#include "model/shapes.h"
#include "testbench/attention_simulation.h"
#include "testbench/attention_workload.h"
#include "testbench/head_split.h"
#include "testbench/measurement.h"
#include "testbench/networks.h"
#include "testbench/report_attention.h"
#include "testbench/side_by_side.h"
#include "testbench/simulation.h"
#include "tlm/core.h"

namespace systole::testbench {
namespace {

using Json = VitcodRuns::Json;

constexpr std::uint64_t kSeed = 1;
constexpr std::uint32_t kDeitTokens = 197;

Json attention_document(const model::AttentionMask& mask, const HeadSplit& split, std::size_t dim,
                        const hw::Machine& machine) {
  const model::AttentionShape& shape = mask.shape();
  const AttentionWorkload workload =
      make_attention_workload({shape.heads, shape.queries, shape.keys, dim},
                              split_mask(mask, split, dim, machine.attention), machine, false);
  AttentionReport report;
  report.machine = machine;
  report.reordering = split.text();
  report.functional = false;
  report.workload = &workload;
  report.result = simulate_attention(workload, machine, false);
  return attention_json(report);
}

Json network_document(const model::Graph& graph, const hw::Machine& machine) {
  SimulationOptions options;
  options.functional = false;
  return to_json(measure(machine, graph.name, model::count_macs(graph), options,
                         simulate(graph, mapper::map_graph(graph, machine), machine,
                                  tlm_model::make_models(machine), {{}}, options)));
}

std::vector<std::vector<std::uint8_t>> keep_of(const model::AttentionMask& mask) {
  std::vector<std::vector<std::uint8_t>> layers(mask.shape().layers);
  std::size_t cell = 0;
  for (auto& layer : layers) {
    layer.resize(mask.shape().heads * mask.shape().head_cells());
    for (std::uint8_t& keep : layer) keep = mask.kept(cell++) ? 1 : 0;
  }
  return layers;
}

Json deit_document(const hw::Machine& machine, const model::AttentionMask* mask) {
  model::SeededOptions options;
  options.datapath = machine.datapath;
  options.shape_only = true;
  if (mask != nullptr) options.keep = keep_of(*mask);
  return network_document(model::make_seeded_encoder("deit-tiny", model::find_shape("deit-tiny"),
                                                     kDeitTokens, kSeed, options),
                          machine);
}

hw::Machine with_small_buffers(hw::Machine machine, std::size_t dim) {
  hw::Machine::Attention& attention = machine.attention;
  const auto least = static_cast<std::uint32_t>((dim + 1023) / 1024);
  attention.query_kib = attention.key_kib = attention.value_kib = least;
  return machine;
}

/// Where the document of each experiment goes.
class Batch {
 public:
  void add(Json& document, Experiment experiment) {
    experiments_.push_back(std::move(experiment));
    documents_.push_back(&document);
  }
  void run() {
    std::vector<Json> found = run_side_by_side(experiments_);
    for (std::size_t i = 0; i < found.size(); ++i) *documents_[i] = std::move(found[i]);
  }

 private:
  std::vector<Experiment> experiments_;
  std::vector<Json*> documents_;
};

}  // namespace

VitcodRuns run_vitcod(const VitcodSubject& subject) {
  VitcodRuns runs;
  Batch batch;
  const hw::Machine& machine = subject.machine;
  const model::AttentionMask& mask = subject.mask;
  const HeadSplit best, unordered{false, {}};
  const HeadSplit published{true, model::default_threshold(mask.shape().queries)};
  const auto attention = [&](Json& document, const model::AttentionMask& cells,
                             const HeadSplit& split, std::size_t dim, const hw::Machine& on) {
    batch.add(document,
              [&cells, split, dim, on] { return attention_document(cells, split, dim, on); });
  };
  const model::AttentionMask dense = dense_mask(mask.shape());
  const model::AttentionMask dense_maps = dense_mask(subject.maps_shape);
  // The longest first.
  batch.add(runs.deit_dense, [&] { return deit_document(machine, nullptr); });
  if (subject.deit_tiny) {
    runs.deit_pruned.emplace();
    batch.add(*runs.deit_pruned, [&] { return deit_document(machine, &mask); });
  }
  attention(runs.dense, dense, best, subject.mask_dim, machine);
  attention(runs.reordered, mask, best, subject.mask_dim, machine);
  attention(runs.threshold, mask, published, subject.mask_dim, machine);
  attention(runs.unordered, mask, unordered, subject.mask_dim, machine);
  attention(runs.small_buffers, mask, best, subject.mask_dim,
            with_small_buffers(machine, subject.mask_dim));
  attention(runs.sweep_dense, dense_maps, best, subject.maps_dim, machine);
  runs.sweep_reordered.resize(subject.sweep.size());
  runs.sweep_unordered.resize(subject.sweep.size());
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const model::AttentionMask& point = subject.sweep[i].mask;
    attention(runs.sweep_reordered[i], point, best, subject.maps_dim, machine);
    attention(runs.sweep_unordered[i], point, unordered, subject.maps_dim, machine);
  }
  for (const auto& [document, model] :
       {std::pair{&runs.vit_dense, "vit65"}, std::pair{&runs.vit_pruned, "vit65-sparse90"}}) {
    batch.add(*document, [&machine, name = std::string(model)] {
      return network_document(load_network(name, machine).graph, machine);
    });
  }
  batch.run();
  return runs;
}

}  // namespace systole::testbench

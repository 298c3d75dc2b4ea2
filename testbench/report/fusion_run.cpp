#include "testbench/report/fusion_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "mapper/fusion_account.h"
#include "mapper/mapping.h"
#include "model/graph/graph_builder.h"
#include "testbench/common/side_by_side.h"
#include "testbench/report/measurement.h"
#include "testbench/run/simulation.h"
#include "tlm/core/core.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

std::uint64_t counted_by(const SimulationResult& result, std::string_view block,
                         std::string_view name) {
  return hw::counter_of(result.blocks, block, name) / result.cycles.size();
}

/// What a process hands back but the outputs.
constexpr std::pair<const char*, std::uint64_t FusionRun::*> kCounts[] = {
    {"passes", &FusionRun::passes},
    {"trips", &FusionRun::trips},
    {"accesses", &FusionRun::accesses},
    {"stationary_bytes", &FusionRun::stationary_bytes},
    {"parameter_bytes", &FusionRun::parameter_bytes},
    {"cycles", &FusionRun::cycles},
    {"loaded_bytes", &FusionRun::loaded_bytes},
    {"operand_bytes", &FusionRun::operand_bytes},
    {"written_bytes", &FusionRun::written_bytes},
    {"vectors", &FusionRun::vectors},
    {"moved_bytes", &FusionRun::moved_bytes},
    {"mismatches", &FusionRun::mismatches},
};

Json fusion_document(const FusionTask& task) {
  const model::Graph graph = task.graph(task.machine);
  const mapper::Mapping mapping = mapper::map_graph(graph, task.machine);
  SimulationOptions options;
  options.functional = !task.inputs.empty();
  options.check = task.check && options.functional;
  const std::vector<std::vector<std::uint8_t>> nothing{{}};
  const Measurement measured =
      measure(task.machine, graph.name, model::count_macs(graph), options,
              simulate(graph, mapping, task.machine, tlm_model::make_models(task.machine),
                       options.functional ? task.inputs : nothing, options));
  const tlm_model::System::Traffic traffic = measured.traffic();
  const SimulationResult& result = measured.result;
  FusionRun run = expected_fusion(graph, mapping);
  run.cycles = static_cast<std::uint64_t>(measured.mean_cycles());
  run.loaded_bytes = counted_by(result, "load", "read_bytes");
  run.operand_bytes = counted_by(result, "store", "operand_bytes");
  run.written_bytes = counted_by(result, "store", "written_bytes");
  run.vectors = counted_by(result, "store", "accumulator_reads");
  run.mismatches = measured.mismatches();
  run.moved_bytes = traffic.read_bytes + traffic.written_bytes;
  Json document = {{"outputs", Json::array()}};
  for (const auto& [name, count] : kCounts) document[name] = run.*count;
  for (const std::vector<std::uint8_t>& output : result.outputs) {
    for (const std::uint8_t byte : output) document["outputs"].push_back(byte);
  }
  return document;
}

FusionRun run_of(const Json& document) {
  FusionRun run;
  for (const auto& [name, count] : kCounts) document.at(name).get_to(run.*count);
  document.at("outputs").get_to(run.outputs);
  return run;
}

}  // namespace

hw::Machine with_fusion(hw::Machine machine, hw::FusionLevel level) {
  machine.mapper.fusion = level;
  if (level == hw::FusionLevel::kAll && machine.preop.lanes == 0) {
    machine.preop.lanes = machine.postop.lanes;
  }
  return machine;
}

FusionRun expected_fusion(const model::Graph& graph, const mapper::Mapping& mapping) {
  const mapper::FusionAccount account = mapper::account_fusion(graph, mapping);
  const mapper::PassAccount total = account.total();
  FusionRun run;
  run.passes = account.passes.size();
  run.trips = total.trips;
  run.accesses = total.accesses();
  run.stationary_bytes = total.stationary.bytes;
  run.parameter_bytes = sizeof(std::int32_t) * total.parameters;
  run.cycles = mapping.expected_cycles;
  return run;
}

std::vector<FusionRun> run_fusion(const std::vector<FusionTask>& tasks) {
  std::vector<Experiment> experiments;
  for (const FusionTask& task : tasks) {
    experiments.emplace_back([&task] { return fusion_document(task); });
  }
  std::vector<FusionRun> runs;
  for (const Json& document : run_side_by_side(experiments)) runs.push_back(run_of(document));
  return runs;
}

double differing_bytes(const FusionRun* runs, std::size_t count) {
  const std::vector<std::uint8_t>& first = runs[0].outputs;
  std::size_t differing = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const std::vector<std::uint8_t>& other = runs[i].outputs;
    if (first.size() != other.size()) {
      differing += std::max(first.size(), other.size());
      continue;
    }
    for (std::size_t k = 0; k < first.size(); ++k) differing += first[k] != other[k];
  }
  return static_cast<double>(differing);
}

}  // namespace systole::testbench

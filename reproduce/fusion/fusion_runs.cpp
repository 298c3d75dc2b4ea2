#include "reproduce/fusion/fusion_runs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

Json fusion_document(const FusionTask& task) {
  const model::Graph graph = task.graph(task.machine);
  const mapper::Mapping mapping = mapper::map_graph(graph, task.machine);
  const mapper::FusionAccount account = mapper::account_fusion(graph, mapping);
  const mapper::PassAccount total = account.total();
  SimulationOptions options;
  options.functional = !task.inputs.empty();
  const std::vector<std::vector<std::uint8_t>> nothing{{}};
  const Measurement measured =
      measure(task.machine, graph.name, model::count_macs(graph), options,
              simulate(graph, mapping, task.machine, tlm_model::make_models(task.machine),
                       options.functional ? task.inputs : nothing, options));
  const tlm_model::System::Traffic traffic = measured.traffic();
  const SimulationResult& result = measured.result;
  const auto counted_by = [&](const char* block, const char* name) {
    return hw::counter_of(result.blocks, block, name) / result.cycles.size();
  };
  Json document = {{"passes", account.passes.size()},
                   {"trips", total.trips},
                   {"accesses", total.accesses()},
                   {"stationary_bytes", total.stationary.bytes},
                   {"parameter_bytes", sizeof(std::int32_t) * total.parameters},
                   {"cycles", static_cast<std::uint64_t>(measured.mean_cycles())},
                   {"loaded_bytes", counted_by("load", "read_bytes")},
                   {"operand_bytes", counted_by("store", "operand_bytes")},
                   {"written_bytes", counted_by("store", "written_bytes")},
                   {"vectors", counted_by("store", "accumulator_reads")},
                   {"moved_bytes", traffic.read_bytes + traffic.written_bytes},
                   {"outputs", Json::array()}};
  for (const std::vector<std::uint8_t>& output : result.outputs) {
    for (const std::uint8_t byte : output) document["outputs"].push_back(byte);
  }
  return document;
}

FusionRun run_of(const Json& document) {
  FusionRun run;
  const auto read = [&](const char* name, std::uint64_t& value) {
    value = document.at(name).get<std::uint64_t>();
  };
  read("passes", run.passes);
  read("trips", run.trips);
  read("accesses", run.accesses);
  read("stationary_bytes", run.stationary_bytes);
  read("parameter_bytes", run.parameter_bytes);
  read("cycles", run.cycles);
  read("loaded_bytes", run.loaded_bytes);
  read("operand_bytes", run.operand_bytes);
  read("written_bytes", run.written_bytes);
  read("vectors", run.vectors);
  read("moved_bytes", run.moved_bytes);
  run.outputs = document.at("outputs").get<std::vector<std::uint8_t>>();
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

std::vector<FusionRun> run_fusion(const std::vector<FusionTask>& tasks) {
  std::vector<Experiment> experiments;
  for (const FusionTask& task : tasks) {
    experiments.emplace_back([&task] { return fusion_document(task); });
  }
  std::vector<FusionRun> runs;
  for (const Json& document : run_side_by_side(experiments)) runs.push_back(run_of(document));
  return runs;
}

std::uint64_t differing_bytes(const FusionRun& a, const FusionRun& b) {
  if (a.outputs.size() != b.outputs.size()) return std::max(a.outputs.size(), b.outputs.size());
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < a.outputs.size(); ++i) differing += a.outputs[i] != b.outputs[i];
  return differing;
}

}  // namespace systole::testbench

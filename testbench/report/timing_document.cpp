#include "testbench/report/timing_document.h"

#include "mapper/mapping.h"
#include "model/graph/graph_builder.h"
#include "testbench/report/measurement.h"
#include "testbench/run/simulation.h"
#include "tlm/core/core.h"

namespace systole::testbench {

nlohmann::ordered_json timing_document(const model::Graph& graph, const hw::Machine& machine) {
  SimulationOptions options;
  options.functional = false;
  return to_json(measure(machine, graph.name, model::count_macs(graph), options,
                         simulate(graph, mapper::map_graph(graph, machine), machine,
                                  tlm_model::make_models(machine), {{}}, options)));
}

double attention_cycles_of(const nlohmann::ordered_json& network) {
  const nlohmann::ordered_json& block = network.at("blocks").at("attention");
  double cycles = block.at("busy").get<double>();
  for (const auto& [cause, stalled] : block.at("stalled").items()) cycles += stalled.get<double>();
  return cycles;
}

}  // namespace systole::testbench

#include "testbench/sparsify/structure_curve.h"

#include <fmt/format.h>

#include <cmath>

#include "base/printable.h"
#include "model/build/host_operators.h"
#include "model/float/float_vit.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "testbench/common/side_by_side.h"
#include "testbench/common/text.h"
#include "testbench/network/tensors.h"
#include "testbench/report/timing_document.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

/// The results of a graph for inputs.
std::vector<std::vector<std::int32_t>> outputs_of(
    const model::Graph& graph, const std::vector<std::vector<std::int32_t>>& inputs) {
  model::Reference reference(graph, {true, false});
  const std::string& in = graph.tensors[input_tensor(graph)].name;
  const std::string& out = graph.tensors[output_tensor(graph)].name;
  std::vector<std::vector<std::int32_t>> outputs;
  for (const std::vector<std::int32_t>& input : inputs) {
    reference.set_input(in, input);
    reference.run();
    outputs.push_back(reference.values(out));
  }
  return outputs;
}

/// What the network is worth without some of its parts.
ordered_json structure_document(const IntegerSubject& subject, const StructureRanking& ranking,
                                const std::vector<std::vector<std::int32_t>>& whole, double share,
                                const hw::Machine& machine) {
  std::size_t gone = 0;
  const model::Graph graph = ranking.without(share, gone);
  std::vector<std::vector<std::int32_t>> inputs;
  for (const std::vector<std::int32_t>& input : subject.test) {
    inputs.push_back(ranking.reordered(input));
  }
  const std::vector<std::vector<std::int32_t>> outputs = outputs_of(graph, inputs);
  double error = 0, power = 0;
  std::size_t right = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<std::int32_t> expected =
        ranking.reordered_output(whole[i], outputs[i].size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      error += std::pow(static_cast<double>(outputs[i][k]) - expected[k], 2);
      power += std::pow(static_cast<double>(expected[k]), 2);
    }
    if (!subject.labels.empty() && model::argmax(outputs[i]) == subject.labels[i]) ++right;
  }
  const ordered_json run = timing_document(model::for_machine(graph, machine), machine);
  ordered_json document{{"wanted", share}, {"gone", gone}, {"accuracy", nullptr}};
  if (!subject.labels.empty()) {
    document["accuracy"] = static_cast<double>(right) / static_cast<double>(outputs.size());
  }
  document["error"] = power > 0 ? std::sqrt(error / power) : 0.0;
  document["macs"] = model::count_macs(graph);
  document["cycles"] = run.at("cycles");
  document["dram_bytes"] =
      run.at("dram_read_bytes").get<double>() + run.at("dram_write_bytes").get<double>();
  document["energy_joules"] = run.at("energy_joules");
  return document;
}

StructurePoint structure_point(const ordered_json& document) {
  StructurePoint point;
  document.at("wanted").get_to(point.wanted);
  document.at("gone").get_to(point.gone);
  if (!document.at("accuracy").is_null()) point.accuracy = document["accuracy"].get<double>();
  document.at("error").get_to(point.error);
  document.at("macs").get_to(point.macs);
  document.at("cycles").get_to(point.cycles);
  document.at("dram_bytes").get_to(point.dram_bytes);
  document.at("energy_joules").get_to(point.joules);
  return point;
}

}  // namespace

StructureCurve structure_curve(const AttentionSubject& of, Structure structure,
                               const std::vector<double>& shares, const hw::Machine& machine) {
  const IntegerSubject subject = of.integers(machine.datapath);
  const StructureRanking ranking(subject, structure);
  const std::vector<std::vector<std::int32_t>> whole = outputs_of(subject.graph, subject.test);
  std::vector<Experiment> experiments;
  const auto add = [&](double share) {
    experiments.emplace_back(
        [&, share] { return structure_document(subject, ranking, whole, share, machine); });
  };
  add(0.0);
  for (const double share : shares) add(share);
  StructureCurve curve{of.name(),       machine.name,    structure, subject.test.size(),
                       ranking.parts(), ranking.order(), {}};
  for (const ordered_json& document : run_side_by_side(experiments)) {
    curve.points.push_back(structure_point(document));
  }
  return curve;
}

std::string curve_text(const StructureCurve& curve) {
  const char* const parts = structure_name(curve.structure);
  FactList facts;
  facts.add("model", hw::printable(curve.model));
  facts.add("pruned", fmt::format("{} of {} that may go, least important first", parts,
                                  grouped(curve.parts)));
  facts.add("inputs", grouped(curve.inputs));
  facts.add("machine", hw::printable(curve.machine) + ", timing of one inference");
  const bool labels = curve.points.front().accuracy.has_value();
  Table table(fmt::format(">{} gone | >share | {}>error | >MACs | >cycles | >bytes | >energy",
                          parts, labels ? ">accuracy | " : ""));
  for (const StructurePoint& point : curve.points) {
    std::vector<std::string> cells{grouped(point.gone), percent(static_cast<double>(point.gone) /
                                                                static_cast<double>(curve.parts))};
    if (labels) cells.push_back(fmt::format("{:.2f}%", 100 * point.accuracy.value()));
    cells.push_back(fmt::format("{:.2f}%", 100 * point.error));
    cells.push_back(grouped(point.macs));
    cells.push_back(grouped_rounded(point.cycles));
    cells.push_back(grouped_rounded(point.dram_bytes));
    cells.push_back(with_prefix(point.joules, "J"));
    table.add(std::move(cells));
  }
  return facts.text() + "\n" + table.text() + "\n" +
         paragraph("Error: of the outputs, to those of the whole network. Nothing is fine-tuned.") +
         "\n";
}

std::string curve_csv(const StructureCurve& curve) {
  std::string text = "share,gone,accuracy,error,macs,cycles,dram_bytes,energy_joules\n";
  for (const StructurePoint& point : curve.points) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", point.wanted, point.gone,
                        point.accuracy ? fmt::format("{}", *point.accuracy) : "", point.error,
                        point.macs, point.cycles, point.dram_bytes, point.joules);
  }
  return text;
}

ordered_json curve_json(const StructureCurve& curve) {
  ordered_json document{{"model", curve.model},
                        {"machine", curve.machine},
                        {"structure", structure_name(curve.structure)},
                        {"inputs", curve.inputs},
                        {"parts", curve.parts},
                        {"order", curve.order},
                        {"curve", ordered_json::array()}};
  for (const StructurePoint& point : curve.points) {
    document["curve"].push_back(
        {{"wanted", point.wanted},
         {"gone", point.gone},
         {"accuracy", point.accuracy ? ordered_json(*point.accuracy) : ordered_json(nullptr)},
         {"error", point.error},
         {"macs", point.macs},
         {"cycles", point.cycles},
         {"dram_bytes", point.dram_bytes},
         {"energy_joules", point.joules}});
  }
  return document;
}

}  // namespace systole::testbench

#include "testbench/estimate/report_cost.h"

#include <fmt/format.h>

#include "analysis/llama_cost.h"
#include "testbench/common/text.h"
#include "testbench/report/machine_json.h"

namespace systole::testbench {
namespace {

using analysis::Bound;
using analysis::CostSummary;
using analysis::OperatorClass;
using analysis::OperatorCost;
using nlohmann::ordered_json;

bool is_decoder(const CostReport& report) {
  return report.network.kind == model::NetworkKind::kDecoder && !report.network.llama;
}

/// Cycles of the survey's model that the operators of a class take, or all.
double cycles_by_survey(const CostReport& report, std::optional<OperatorClass> kind) {
  double cycles = 0;
  for (const OperatorCost& op : report.tiled) {
    if (!kind || op.kind == *kind) cycles += report.survey.cycles(op);
  }
  return cycles;
}

std::string share(double part, double whole) {
  return fmt::format("{:.1f}", whole > 0 ? 100 * part / whole : 0.0);
}

std::vector<OperatorCost> rows_of(const CostSummary& summary) {
  std::vector<OperatorCost> rows(summary.classes.begin(), summary.classes.end());
  rows.push_back(summary.total);
  return rows;
}

std::string class_table(const CostSummary& summary) {
  Table table("class | >MMAC | >MFLOP | >% | >MB | >% | >FLOP/byte");
  for (const OperatorCost& row : rows_of(summary)) {
    table.add({row.name, fmt::format("{:.1f}", row.macs * 1e-6),
               fmt::format("{:.1f}", row.flops * 1e-6), share(row.flops, summary.total.flops),
               fmt::format("{:.2f}", row.bytes * 1e-6), share(row.bytes, summary.total.bytes),
               fmt::format("{:.2f}", row.intensity())});
  }
  return table.text();
}

std::string survey_table(const CostReport& report) {
  const double total = cycles_by_survey(report, std::nullopt);
  Table table("operator | >MMAC | >MB | >FLOP/byte | >kcycles | >%");
  for (const OperatorCost& op : report.tiled) {
    const double cycles = report.survey.cycles(op);
    table.add({op.name, fmt::format("{:.1f}", op.macs * 1e-6),
               fmt::format("{:.2f}", op.bytes * 1e-6),
               op.macs > 0 ? fmt::format("{:.2f}", op.intensity()) : "-",
               fmt::format("{:.1f}", cycles * 1e-3), share(cycles, total)});
  }
  const OperatorCost sum = analysis::summarise(report.tiled).total;
  table.add({"total", fmt::format("{:.1f}", sum.macs * 1e-6),
             fmt::format("{:.2f}", sum.bytes * 1e-6), fmt::format("{:.2f}", sum.intensity()),
             fmt::format("{:.1f}", total * 1e-3), "100.0"});
  return table.text();
}

std::string roofline_text(const CostReport& report) {
  const analysis::Roofline& roofline = *report.roofline;
  FactList facts;
  facts.add("array", fmt::format("{:.0f} MAC/cycle at most", roofline.macs));
  facts.add("memory",
            fmt::format("{:.1f} bytes/cycle: bus {:.1f} each way, DRAM {:.1f}, outstanding "
                        "requests {:.1f} read and {:.1f} written",
                        roofline.memory_bytes(), roofline.bus_bytes, roofline.dram_bytes,
                        roofline.read_bytes, roofline.write_bytes));
  facts.add("post-op", fmt::format("{:.0f} elements/cycle in a pass", roofline.elements));
  facts.add("ridge", fmt::format("{:.1f} MAC/byte", roofline.ridge()));
  Table table("class | >MAC/byte | >array | >memory | >post-op | >MAC/cycle | >bound by");
  for (const OperatorCost& row : analysis::summarise(report.ideal).classes) {
    const Bound bound = analysis::bound_of(row, roofline);
    const auto kilo = [](double cycles) { return fmt::format("{:.1f}", cycles * 1e-3); };
    table.add({row.name, fmt::format("{:.1f}", row.bytes > 0 ? row.macs / row.bytes : 0.0),
               kilo(bound.array), kilo(bound.memory), kilo(bound.postop),
               fmt::format("{:.1f}", row.macs / bound.cycles()),
               std::string(name_of(bound.resource()))});
  }
  return "roofline, kcycles, each operand moved once\n" + facts.text() + "\n" + table.text();
}

ordered_json cost_of(const OperatorCost& cost) {
  return {{"name", cost.name},
          {"macs", cost.macs},
          {"flops", cost.flops},
          {"bytes", cost.bytes},
          {"intensity", cost.intensity()}};
}

ordered_json classes_json(const CostReport& report) {
  ordered_json array = ordered_json::array();
  for (const OperatorCost& row : analysis::summarise(report.ideal).classes) {
    array.push_back(cost_of(row));
    if (!report.roofline) continue;
    const Bound bound = analysis::bound_of(row, *report.roofline);
    array.back()["array_cycles"] = bound.array;
    array.back()["memory_cycles"] = bound.memory;
    array.back()["postop_cycles"] = bound.postop;
    array.back()["bound_by"] = name_of(bound.resource());
  }
  return array;
}

ordered_json survey_json(const CostReport& report) {
  ordered_json operators = ordered_json::array();
  for (const OperatorCost& op : report.tiled) {
    operators.push_back(cost_of(op));
    operators.back()["cycles"] = report.survey.cycles(op);
  }
  ordered_json total = cost_of(analysis::summarise(report.tiled).total);
  total["cycles"] = cycles_by_survey(report, std::nullopt);
  return {{"operators", std::move(operators)}, {"total", std::move(total)}};
}

}  // namespace

CostReport analyse(const AnalysedNetwork& network) {
  CostReport report;
  report.network = network;
  if (network.llama) {
    report.ideal = analysis::llama_costs(*network.llama, network.length);
    return report;
  }
  if (is_decoder(report)) {
    report.ideal = report.tiled = analysis::decode_costs(network.shape, network.length);
    return report;
  }
  const analysis::EncoderWorkload workload{network.shape, network.length, network.projections};
  report.ideal = analysis::ideal_costs(workload);
  report.tiled = analysis::tiled_costs(workload, report.survey.limits);
  return report;
}

std::string cost_text(const CostReport& report) {
  const AnalysedNetwork& network = report.network;
  FactList facts;
  facts.add("model", fmt::format("{}: {} of width {}, {}, hidden {}", network.name,
                                 counted(network.shape.layers, "layer"), network.shape.width,
                                 counted(network.shape.heads, "head"), network.shape.hidden));
  std::string tokens = fmt::format("{}{}", network.length,
                                   is_decoder(report) ? ", generated one by one" : " at once");
  if (network.length > network.positions) {
    tokens += fmt::format("; more than its {} positions", network.positions);
  }
  facts.add("tokens", tokens);
  if (network.projections != 4) {
    facts.add("projections", fmt::format("MACs and weights of {} of 4", network.projections));
  }
  std::string text = facts.text() + "\neach operand moved once, a byte per element\n" +
                     class_table(analysis::summarise(report.ideal));
  if (!report.tiled.empty()) {
    text += "\nthe survey's latency model: 16 x 16 array, 2 MiB of L2\n" + survey_table(report);
  }
  if (report.roofline) text += "\n" + roofline_text(report);
  return text;
}

ordered_json cost_json(const CostReport& report) {
  const AnalysedNetwork& network = report.network;
  ordered_json document{{"model", network.name},
                        {"layers", network.shape.layers},
                        {"width", network.shape.width},
                        {"heads", network.shape.heads},
                        {"hidden", network.shape.hidden},
                        {"length", network.length},
                        {"decode", is_decoder(report)},
                        {"projections", network.projections},
                        {"classes", classes_json(report)},
                        {"total", cost_of(analysis::summarise(report.ideal).total)}};
  document["survey"] = report.tiled.empty() ? ordered_json() : survey_json(report);
  if (report.roofline) document["roofline"] = roofline_json(*report.roofline);
  return document;
}

}  // namespace systole::testbench

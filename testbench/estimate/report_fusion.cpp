#include "testbench/estimate/report_fusion.h"

#include <string_view>

#include "mapper/fusion_account.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using mapper::FusionDecision;

std::string_view place_name(FusionDecision::Role role) {
  switch (role) {
    case FusionDecision::Role::kAnchor:
      return "anchor";
    case FusionDecision::Role::kPost:
      return "behind";
    case FusionDecision::Role::kPre:
      return "in front";
    case FusionDecision::Role::kInside:
      break;
  }
  return "inside";
}

}  // namespace

std::string fusion_text(const model::Graph& graph, const mapper::Mapping& mapping) {
  const mapper::FusionAccount account = mapper::account_fusion(graph, mapping);
  const mapper::PassAccount total = account.total();
  FactList facts;
  facts.add("fusion", counted(mapping.decisions.size(), "operator") + " of the graph in " +
                          counted(account.passes.size(), "pass", "passes") +
                          ", the heads of an attention " + "being one");
  facts.add("elements", grouped(total.trips) + " through loops, " + grouped(total.accesses()) +
                            " read or written beside weights, keys and values");
  Table table({{"operator"}, {"#", Table::Align::kRight}, {"place"}, {"why"}});
  for (const FusionDecision& decision : mapping.decisions) {
    table.add({graph.nodes[decision.node].name, std::to_string(decision.group),
               std::string(place_name(decision.role)), decision.why.empty() ? "-" : decision.why});
  }
  return facts.text() + "\n" + table.text();
}

nlohmann::ordered_json fusion_json(const model::Graph& graph, const mapper::Mapping& mapping) {
  const mapper::FusionAccount account = mapper::account_fusion(graph, mapping);
  const mapper::PassAccount total = account.total();
  nlohmann::ordered_json document{{"passes", account.passes.size()},
                                  {"loop_trips", total.trips},
                                  {"accesses", total.accesses()},
                                  {"operators", nlohmann::ordered_json::array()}};
  for (const FusionDecision& decision : mapping.decisions) {
    document["operators"].push_back({{"name", graph.nodes[decision.node].name},
                                     {"runs_in", mapping.groups[decision.group].name},
                                     {"place", place_name(decision.role)},
                                     {"why", decision.why}});
  }
  return document;
}

}  // namespace systole::testbench

#include "testbench/estimate/report_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/mapped_cost.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "hw/postop/postop.h"
#include "mapper/fusion_account.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

struct MapTotals {
  std::uint64_t cycles = 0, load_bytes = 0, commands = 0;
};

MapTotals totals_of(const std::vector<OperatorSummary>& operators, const mapper::Mapping& mapping) {
  MapTotals totals;
  for (const OperatorSummary& op : operators) {
    totals.cycles += op.cycles;
    totals.load_bytes += op.load_bytes;
  }
  totals.commands = mapping.program.commands.size();
  return totals;
}

/// Operators of one general name that are mapped alike; `op` is the first of them, with the cycles
/// of all.
struct MapLine {
  OperatorSummary op;
  std::uint64_t times = 0;
};

bool alike(const OperatorSummary& x, const OperatorSummary& y) {
  const auto figures = [](const OperatorSummary& op) {
    return std::tie(op.m, op.n, op.k, op.tile_m, op.tile_n, op.tile_k, op.tiles, op.commands,
                    op.load_bytes, op.on_chip, op.stages);
  };
  return figures(x) == figures(y);
}

/// In the order of their first operator.
std::vector<MapLine> map_lines(const std::vector<OperatorSummary>& operators) {
  std::vector<MapLine> lines;
  for (OperatorSummary op : operators) {
    op.name = analysis::general_name(op.name);
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const MapLine& other) {
      return other.op.name == op.name && alike(other.op, op);
    });
    if (line != lines.end()) {
      ++line->times;
      line->op.cycles += op.cycles;
    } else {
      lines.push_back({std::move(op), 1});
    }
  }
  return lines;
}

using mapper::FusionDecision;

std::string_view place_name(FusionDecision::Role role) {
  switch (role) {
    case FusionDecision::Role::kAnchor:
      return "anchor";
    case FusionDecision::Role::kPost:
      return "after";
    case FusionDecision::Role::kPre:
      return "in front";
    case FusionDecision::Role::kInside:
      break;
  }
  return "inside";
}

std::string_view objective_name(const MappingSearch& search) {
  return hw::find_machine_key("mapper.objective")
      ->words[static_cast<std::size_t>(search.objective)];
}

std::uint64_t tried(const MappingSearch& search) {
  return std::accumulate(
      search.candidates.begin(), search.candidates.end(), std::uint64_t{0},
      [](std::uint64_t sum, const MappingCandidate& candidate) { return sum + candidate.tried; });
}

std::string cycles_text(const MappingCost& cost) {
  return grouped(static_cast<std::uint64_t>(cost.cycles));
}
std::string energy_of(const MappingCost& cost) { return fmt::format("{:.1f}", cost.joules * 1e6); }

/// How much more the simulation took than was expected.
std::string more_than(double simulated, double expected) {
  return fmt::format("{:+.1f}%", 100 * (simulated / expected - 1));
}

}  // namespace

std::vector<OperatorSummary> summarise(const mapper::Mapping& mapping) {
  std::vector<OperatorSummary> operators(mapping.groups.size());
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const mapper::Group& group = mapping.groups[i];
    const mapper::Tiling& tiling = mapping.tilings[i];
    OperatorSummary& op = operators[i];
    op.name = group.name;
    op.m = group.m();
    op.n = group.n();
    op.k = group.k();
    op.tile_m = tiling.m;
    op.tile_n = tiling.n;
    op.tile_k = tiling.k;
    op.cycles = tiling.cycles;
    op.load_bytes = tiling.load_bytes;
    op.on_chip = mapping.program.operators[i].place != hw::Operator::Place::kDram;
    const auto list = [&op](const hw::Chain& chain, const std::string& place) {
      for (const hw::Stage& stage : chain.stages) {
        op.stages.emplace_back(place + std::string(hw::stage_info(stage.op).name));
      }
    };
    if (group.attention()) {
      if (!group.attention()->decoders.empty()) op.stages.emplace_back("decode");
      constexpr std::array<const char*, 3> kOperands = {"query.", "key.", "value."};
      for (std::size_t operand = 0; operand < kOperands.size(); ++operand) {
        list(group.attention()->operand_chains[operand], kOperands[operand]);
      }
      list(group.attention()->softmax, "score.");
    }
    if (group.encoder()) op.stages.emplace_back("encode");
    if (group.host()) op.stages.emplace_back("host." + std::string(hw::name_of(group.host()->op)));
    list(group.chain, "");
  }
  for (const hw::Command& command : mapping.program.commands) {
    if (command.opcode() == hw::Opcode::kEnd) continue;
    OperatorSummary& op = operators.at(command.op);
    ++op.commands;
    const hw::Unit unit = hw::unit_of(command.opcode());
    if (unit == hw::Unit::kStore || unit == hw::Unit::kHost) ++op.tiles;
  }
  return operators;
}

std::string mapping_text(const std::string& model, const std::string& machine,
                         const mapper::Mapping& mapping, const std::vector<std::string>& files) {
  const std::vector<OperatorSummary> operators = summarise(mapping);
  const MapTotals totals = totals_of(operators, mapping);
  FactList facts;
  facts.add("machine", machine);
  facts.add("model", model);
  facts.add("program", fmt::format("{}, {}, {}", counted(operators.size(), "operator"),
                                   counted(totals.commands, "command"),
                                   counted(mapping.program.chains.size(), "chain")));
  facts.add("memory", counted(mapping.dram_bytes, "byte") + " of DRAM");
  facts.add("expected", fmt::format("{}, {} loaded", counted(totals.cycles, "cycle"),
                                    counted(totals.load_bytes, "byte")));
  for (const std::string& file : files) {
    if (!file.empty()) facts.add("written", hw::printable(file));
  }
  Table table("operator | >x | >tiles | >cycles | >loads | to | stages");
  for (const auto& [op, times] : map_lines(operators)) {
    std::string stages;
    for (const std::string& stage : op.stages) stages += (stages.empty() ? "" : " ") + stage;
    table.add({analysis::short_name(op.name), std::to_string(times), std::to_string(op.tiles),
               grouped((op.cycles + times / 2) / times), grouped(op.load_bytes),
               op.on_chip ? "chip" : "DRAM", stages.empty() ? "-" : stages});
  }
  return facts.text() + "\n" + table.text();
}

ordered_json mapping_json(const std::string& model, const std::string& machine,
                          const mapper::Mapping& mapping) {
  const std::vector<OperatorSummary> operators = summarise(mapping);
  const MapTotals totals = totals_of(operators, mapping);
  ordered_json document{{"machine", machine},
                        {"model", model},
                        {"commands", totals.commands},
                        {"chains", mapping.program.chains.size()},
                        {"dram_bytes", mapping.dram_bytes},
                        {"expected_cycles", totals.cycles},
                        {"load_bytes", totals.load_bytes},
                        {"operators", ordered_json::array()}};
  for (const OperatorSummary& op : operators) {
    document["operators"].push_back({{"name", op.name},
                                     {"m", op.m},
                                     {"n", op.n},
                                     {"k", op.k},
                                     {"tile_m", op.tile_m},
                                     {"tile_n", op.tile_n},
                                     {"tile_k", op.tile_k},
                                     {"tiles", op.tiles},
                                     {"commands", op.commands},
                                     {"expected_cycles", op.cycles},
                                     {"load_bytes", op.load_bytes},
                                     {"result", op.on_chip ? "scratchpad" : "dram"},
                                     {"stages", op.stages}});
  }
  return document;
}

std::string fusion_text(const model::Graph& graph, const mapper::Mapping& mapping) {
  const mapper::FusionAccount account = mapper::account_fusion(graph, mapping);
  const mapper::PassAccount total = account.total();
  FactList facts;
  facts.add("fusion", counted(mapping.decisions.size(), "operator") + " of the graph in " +
                          counted(account.passes.size(), "pass", "passes") +
                          ", the heads of an attention " + "being one");
  facts.add("elements", grouped(total.trips) + " through loops, " + grouped(total.accesses()) +
                            " read or written beside weights, keys and values");
  Table table("operator | ># | place | why");
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

std::string search_text(const MappingSearch& search) {
  FactList facts;
  facts.add("search", fmt::format("for {}: {}, {} compared", objective_name(search),
                                  counted(search.candidates.size(), "mapping"),
                                  counted(tried(search), "tiling")));
  facts.add("best", fmt::format("{}, fusion {}", search.chosen().strategy_name(),
                                search.chosen().fusion_name()));
  Table table("mapping | fusion | >cycles | >simulated | > | >uJ | >simulated | >");
  for (const MappingCandidate& candidate : search.candidates) {
    std::vector<std::string> row(8);
    row[0] = candidate.strategy_name();
    row[1] = candidate.fusion_name();
    row[2] = cycles_text(candidate.expected);
    row[5] = energy_of(candidate.expected);
    if (candidate.simulated) {
      row[3] = cycles_text(*candidate.simulated);
      row[4] = more_than(candidate.simulated->cycles, candidate.expected.cycles);
      row[6] = energy_of(*candidate.simulated);
      row[7] = more_than(candidate.simulated->joules, candidate.expected.joules);
    }
    table.add(row);
  }
  return facts.text() + "\n" + table.text();
}

nlohmann::ordered_json search_json(const MappingSearch& search) {
  nlohmann::ordered_json document{{"objective", objective_name(search)},
                                  {"tilings", tried(search)},
                                  {"best", search.best},
                                  {"candidates", nlohmann::ordered_json::array()}};
  for (const MappingCandidate& candidate : search.candidates) {
    nlohmann::ordered_json entry{{"mapping", candidate.strategy_name()},
                                 {"fusion", candidate.fusion_name()},
                                 {"expected_cycles", candidate.expected.cycles},
                                 {"expected_energy_j", candidate.expected.joules}};
    if (candidate.simulated) {
      entry["cycles"] = candidate.simulated->cycles;
      entry["energy_j"] = candidate.simulated->joules;
    }
    document["candidates"].push_back(entry);
  }
  return document;
}

}  // namespace systole::testbench

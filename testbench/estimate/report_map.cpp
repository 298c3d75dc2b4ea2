#include "testbench/estimate/report_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "analysis/mapped_cost.h"
#include "base/printable.h"
#include "hw/postop/postop.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;
using Align = Table::Align;

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
    if (group.attention) {
      if (!group.attention->decoders.empty()) op.stages.emplace_back("decode");
      constexpr std::array<const char*, 3> kOperands = {"query.", "key.", "value."};
      for (std::size_t operand = 0; operand < kOperands.size(); ++operand) {
        list(group.attention->operand_chains[operand], kOperands[operand]);
      }
      list(group.attention->softmax, "score.");
    }
    if (group.encoder) op.stages.emplace_back("encode");
    if (group.host) op.stages.emplace_back("host." + std::string(hw::name_of(group.host->op)));
    list(group.chain, "");
  }
  for (const hw::Command& command : mapping.program.commands) {
    if (command.opcode == hw::Opcode::kEnd) continue;
    OperatorSummary& op = operators.at(command.op);
    ++op.commands;
    const hw::Unit unit = hw::unit_of(command.opcode);
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
  Table table({{"operator"},
               {"x", Align::kRight},
               {"tiles", Align::kRight},
               {"cycles", Align::kRight},
               {"loads", Align::kRight},
               {"to"},
               {"stages"}});
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

}  // namespace systole::testbench

#include "testbench/estimate/report_dataflow.h"

#include <fmt/format.h>

#include <utility>

#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using analysis::DataflowCost;
using analysis::OperandAccesses;
using nlohmann::ordered_json;

constexpr std::array<const char*, analysis::kOperands> kOperandNames = {"A", "B", "C"};

/// How often what a level brings is used.
std::string reuse(std::uint64_t macs, std::uint64_t elements) {
  return fmt::format("{:.1f}", static_cast<double>(macs) / static_cast<double>(elements));
}

std::string operand_table(const DataflowCost& cost) {
  Table table("operand | >DRAM | >MACs each | >to PEs | >MACs each | kept in PEs");
  for (std::size_t i = 0; i < analysis::kOperands; ++i) {
    const OperandAccesses& operand = cost.operands[i];
    table.add({kOperandNames[i], grouped(operand.dram_tiles), reuse(cost.macs, operand.dram_tiles),
               grouped(operand.buffer), reuse(cost.macs, operand.buffer),
               cost.nest.held[i] ? "yes" : "no"});
  }
  return table.text();
}

std::string level_table(const DataflowReport& report) {
  Table table("dataflow | >registers | >scratchpad | >accumulator | >DRAM");
  for (std::size_t i = 0; i < report.costs.size(); ++i) {
    const DataflowCost& cost = report.costs[i];
    table.add({std::string(long_name(report.dataflows[i])), grouped(cost.register_accesses),
               grouped(cost.scratchpad_reads + cost.scratchpad_writes),
               grouped(cost.accumulator_reads + cost.accumulator_writes),
               grouped(cost.dram_reads + cost.dram_writes)});
  }
  return table.text();
}

std::string energy_table(const DataflowReport& report) {
  Table table("dataflow | >MACs | >scratchpad | >accumulator | >DRAM | >total | >per MAC");
  for (std::size_t i = 0; i < report.costs.size(); ++i) {
    const DataflowCost& cost = report.costs[i];
    table.add({std::string(long_name(report.dataflows[i])), with_prefix(cost.mac_energy, "J"),
               with_prefix(cost.scratchpad_energy, "J"), with_prefix(cost.accumulator_energy, "J"),
               with_prefix(cost.dram_energy, "J"), with_prefix(cost.energy(), "J"),
               with_prefix(cost.energy() / static_cast<double>(cost.macs), "J")});
  }
  return table.text();
}

ordered_json cost_json(analysis::Stationary dataflow, const DataflowCost& cost) {
  ordered_json operands = ordered_json::object();
  for (std::size_t i = 0; i < analysis::kOperands; ++i) {
    operands[kOperandNames[i]] = {{"dram_elements", cost.operands[i].dram_tiles},
                                  {"buffer_elements", cost.operands[i].buffer},
                                  {"register_fills", cost.operands[i].register_fills}};
  }
  return {{"dataflow", short_name(dataflow)},
          {"loop_nest", to_text(cost.nest)},
          {"operands", std::move(operands)},
          {"register_accesses", cost.register_accesses},
          {"scratchpad_reads", cost.scratchpad_reads},
          {"scratchpad_writes", cost.scratchpad_writes},
          {"accumulator_reads", cost.accumulator_reads},
          {"accumulator_writes", cost.accumulator_writes},
          {"dram_read_bytes", cost.dram_reads},
          {"dram_write_bytes", cost.dram_writes},
          {"energy_joules", cost.energy()},
          {"energy",
           {{"mac", cost.mac_energy},
            {"scratchpad", cost.scratchpad_energy},
            {"accumulator", cost.accumulator_energy},
            {"dram", cost.dram_energy}}}};
}

}  // namespace

DataflowReport compare_dataflows(const hw::Machine& machine, const analysis::ProductShape& shape,
                                 std::vector<analysis::Stationary> dataflows) {
  DataflowReport report{machine.name, shape, std::move(dataflows), {}};
  const analysis::DramTiles tiles = analysis::mapper_tiles(shape, machine);
  for (const analysis::Stationary dataflow : report.dataflows) {
    report.costs.push_back(analysis::cost_of(
        dataflow, analysis::make_nest(dataflow, shape, machine.array, tiles), machine.energy));
  }
  return report;
}

std::string dataflow_text(const DataflowReport& report) {
  FactList facts;
  facts.add("machine", report.machine);
  facts.add("product", fmt::format("{} x {} x {}, {} MACs", report.shape.m, report.shape.n,
                                   report.shape.k, grouped(report.costs.front().macs)));
  std::string text = facts.text();
  for (std::size_t i = 0; i < report.costs.size(); ++i) {
    text += fmt::format("\n{}\n\n{}\n{}", long_name(report.dataflows[i]),
                        to_text(report.costs[i].nest), operand_table(report.costs[i]));
  }
  return text + "\naccesses: elements of operands, sums of the accumulator\n" +
         level_table(report) + "\nenergy; that of registers is part of the MACs'\n" +
         energy_table(report);
}

ordered_json dataflow_json(const DataflowReport& report) {
  ordered_json document{{"machine", report.machine},
                        {"m", report.shape.m},
                        {"n", report.shape.n},
                        {"k", report.shape.k},
                        {"macs", report.costs.front().macs},
                        {"dataflows", ordered_json::array()}};
  for (std::size_t i = 0; i < report.costs.size(); ++i) {
    document["dataflows"].push_back(cost_json(report.dataflows[i], report.costs[i]));
  }
  return document;
}

}  // namespace systole::testbench

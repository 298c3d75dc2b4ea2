/// The survey's networks, what follows from its analytical model, and its figures of energy: Fig.
/// 9, 15 and 32.

#include <fmt/format.h>

#include "analysis/survey_performance.h"
#include "analysis/transformer_cost.h"
#include "hw/silicon/area.h"
#include "model/seeded/shapes.h"
#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

using analysis::OperatorClass;

constexpr std::array<const char*, kSurveyNetworks> kShapes = {"bert-base", "bert-large", "gpt2"};

bool decodes(std::size_t network) {
  return model::find_named_shape(kShapes.at(network)).kind == model::NetworkKind::kDecoder;
}

/// Rows of a chart's points; `ours` of a network at a length.
template <typename Ours>
void add_points(ReproductionSection& section, const PublishedTable& chart, const Ours& ours) {
  for (std::size_t network = 0; network < kSurveyNetworks; ++network) {
    const std::string_view name = kSurveyNetworkNames[network];
    for (const std::uint32_t length : kSurveyLengths) {
      const std::string point = fmt::format("l={}", length);
      section.rows.push_back(compare(fmt::format("{}, {}", name, point), ours(network, length),
                                     chart.cell(point, name)));
    }
  }
}

/// Our model's cycles by class, for a chart without numbers.
void add_class_shares(ReproductionSection& section, std::uint32_t length) {
  const analysis::SurveyModel model;
  const auto costs = analysis::tiled_costs({model::find_shape("bert-base"), length}, model.limits);
  const double total = model.cycles(costs);
  for (const OperatorClass kind : {OperatorClass::kProjection, OperatorClass::kAttention,
                                   OperatorClass::kFeedForward, OperatorClass::kOther}) {
    double cycles = 0;
    for (const analysis::OperatorCost& cost : costs) {
      if (cost.kind == kind) cycles += model.cycles(cost);
    }
    section.rows.push_back(measured(fmt::format("l={}, {}", length, analysis::name_of(kind)),
                                    100.0 * cycles / total, "%"));
  }
}

}  // namespace

std::vector<analysis::OperatorCost> survey_ideal_costs(std::size_t network, std::uint32_t length,
                                                       std::uint32_t projections) {
  const model::EncoderShape shape = model::find_shape(kShapes.at(network));
  if (decodes(network)) return analysis::decode_costs(shape, length);
  return analysis::ideal_costs({shape, length, projections});
}

std::uint32_t survey_projections(std::size_t network) {
  return kSurveyNetworkNames.at(network) == "BERT-Large" ? 3 : 4;
}

double survey_cycles(std::size_t network, std::uint32_t length) {
  const analysis::SurveyModel model;
  const model::EncoderShape shape = model::find_shape(kShapes.at(network));
  return model.cycles(
      decodes(network)
          ? analysis::decode_costs(shape, length)
          : analysis::tiled_costs({shape, length, survey_projections(network)}, model.limits));
}

ReproductionSection latency_section() {
  ReproductionSection section = survey_paper().section("latency");
  const double unit = survey_cycles(0, 128);
  add_points(section, survey_paper().table("fig32"),
             [&](std::size_t network, std::uint32_t length) {
               return survey_cycles(network, length) / unit;
             });
  for (ResultRow& row : section.rows) row.decimals = 1;  // one more than the labels have
  section.rows.push_back(measured("unit: BERT-Base, l=128", unit, "cycles"));
  for (const std::uint32_t length : {128U, 512U, 4096U}) add_class_shares(section, length);
  return section;
}

ReproductionSection cpu_section() {
  ReproductionSection section = survey_paper().section("cpu");
  add_points(section, survey_paper().table("fig9"),
             [](std::size_t, std::uint32_t) { return std::nullopt; });
  return section;
}

ReproductionSection memory_energy_section() {
  const auto byte_pj = [](double kib, double word_bytes) {
    return hw::sram_byte_pj({kib * 1024, word_bytes});
  };
  // Eyeriss's buffer and register file, with words of 16 bits.
  constexpr double kRegisterFile = 0.5, kBuffer = 100, kWord = 2;
  const double registers = byte_pj(kRegisterFile, kWord);
  Metrics metrics{{"buffer", byte_pj(kBuffer, kWord) / registers},
                  {"dram", hw::Machine().energy.dram_byte_pj / registers}};
  for (const int kib : {8, 32, 1024}) metrics[std::to_string(kib)] = byte_pj(kib, 8);
  return survey_paper().section("memories", metrics);
}

ReproductionSection area_section(const hw::Machine& gemmini) {
  constexpr double kToNode = (22.0 / 45.0) * (22.0 / 45.0);
  const hw::AreaReport ours = hw::area_of(gemmini);
  hw::Machine more = gemmini;  // with units for what its host computes
  more.host.operators = hw::HostOperators::kNone;
  const double core = ours.total() - ours.l2;
  return survey_paper().section(
      "area", {{"array", kToNode * ours.array},
               {"scratchpad", kToNode * ours.scratchpad},
               {"accumulator", kToNode * ours.accumulator},
               {"three", kToNode * (ours.array + ours.scratchpad + ours.accumulator)},
               {"postop", kToNode * ours.postop},
               {"functions", 100 * (hw::area_of(more).total() - ours.total()) / core}});
}

ReproductionSection energy_table_section(const hw::Machine& machine) {
  const hw::Machine::Energy& table = machine.energy;
  const auto of = [](const char* key) { return survey_paper().figure(key).value; };
  return survey_paper().section("energy",
                                {{"mac", table.mac_pj},
                                 {"postop", table.postop_pj},
                                 {"sram", table.scratchpad_byte_pj},
                                 {"dram", table.dram_byte_pj},
                                 {"add, energy", of("add_fp32.energy") / of("add8.energy")},
                                 {"add, area", of("add_fp32.area") / of("add8.area")},
                                 {"sram to mac", table.scratchpad_byte_pj / table.mac_pj},
                                 {"dram to mac", table.dram_byte_pj / table.mac_pj}});
}

}  // namespace systole::testbench

/// What follows from the survey's analytical model, and its figures of energy: Fig. 9, 15 and 32.

#include <fmt/format.h>

#include "analysis/survey_performance.h"
#include "analysis/transformer_cost.h"
#include "model/seeded/shapes.h"
#include "reproduce/survey/survey_networks.h"
#include "reproduce/survey/survey_published.h"
#include "reproduce/survey/survey_sections.h"

namespace systole::testbench {
namespace {

using analysis::OperatorClass;

/// Beyond the rounding of a label.
constexpr double kLatencyTolerance = 0.025;

std::string point_name(std::size_t network, std::uint32_t length) {
  return fmt::format("{}, l={}", kSurveyNetworkNames.at(network), length);
}

/// Our model's cycles by class, for a chart without numbers.
void add_shares(ReproductionSection& section, std::uint32_t length) {
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

ReproductionSection latency_section() {
  const SurveyCurves& curves = survey_figure_32();
  ReproductionSection section{"Fig. 32: latency by the analytical model", {}, {}};
  const double unit = survey_cycles(0, 128);
  for (std::size_t network = 0; network < kSurveyNetworks; ++network) {
    for (const SurveyPoint& point : curves.points) {
      section.rows.push_back(compare(point_name(network, point.length),
                                     survey_cycles(network, point.length) / unit,
                                     printed({point.values[network], curves.decimals}, curves.unit,
                                             curves.source, kLatencyTolerance)));
      section.rows.back().decimals = 1;
    }
  }
  section.rows.push_back(measured("unit: BERT-Base, l=128", unit, "cycles"));
  for (const std::uint32_t length : {128U, 512U, 4096U}) add_shares(section, length);
  section.notes.push_back(
      "Relative to BERT-Base of 128 tokens; labels are whole numbers, met within their rounding "
      "and 2.5 %. An operator takes the longer of its MACs over 256 and its bytes in tiles times "
      "1/16 + 1/64. The shares are those of the survey's fig. 30, which has no numbers.");
  return section;
}

ReproductionSection cpu_section() {
  const SurveyCurves& curves = survey_figure_9();
  ReproductionSection section{"Fig. 9: latency on a CPU, quoted", {}, {}};
  for (std::size_t network = 0; network < kSurveyNetworks; ++network) {
    for (const SurveyPoint& point : curves.points) {
      Published label =
          printed({point.values[network], curves.decimals}, curves.unit, curves.source);
      label.tolerance.reset();
      section.rows.push_back(compare(point_name(network, point.length), std::nullopt, label));
    }
  }
  section.notes.push_back(
      "Relative to BERT-Base of 128 tokens. Not claimed: no such CPU is modelled. Which label "
      "belongs to which curve was read from their order.");
  return section;
}

ReproductionSection energy_table_section(const hw::Machine& machine) {
  ReproductionSection section{"Fig. 15: energy per event at 45 nm", {}, {}};
  const hw::Machine::Energy& table = machine.energy;
  const double add8 = survey_published("energy.add8").value;
  const double add_fp32 = survey_published("energy.add_fp32").value;
  section.rows = {
      compare("MAC: mult 8b, add 32b", table.mac_pj, survey_published("energy.mac")),
      compare("post-op: mult 32b, two add 32b", table.postop_pj, survey_published("energy.postop")),
      compare("byte of SRAM: 32b of 8 kb / 4", table.scratchpad_byte_pj,
              survey_published("energy.sram_byte")),
      compare("byte of DRAM: 32b / 4", table.dram_byte_pj, survey_published("energy.dram_byte")),
      compare("add FP32 to add 8b, energy", add_fp32 / add8, survey_published("ratio.add_energy")),
      compare("add FP32 to add 8b, area",
              survey_published("area.add_fp32").value / survey_published("area.add8").value,
              survey_published("ratio.add_area")),
      compare("byte of SRAM to MAC", table.scratchpad_byte_pj / table.mac_pj,
              survey_published("ratio.buffer")),
      compare("byte of DRAM to MAC", table.dram_byte_pj / table.mac_pj,
              survey_published("ratio.dram"))};
  section.notes.push_back(
      "Ours is the machine's energy table. The ratios of additions are those of the survey's own "
      "two figures; ratios to a MAC are of another source there (Eyeriss, 16-bit words).");
  return section;
}

}  // namespace systole::testbench

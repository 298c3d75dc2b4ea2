#include "reproduce/survey/survey.h"

#include <utility>

#include "hw/description/machine_file.h"
#include "reproduce/reproduction_parts.h"

namespace systole::testbench {
namespace {

void add_analysis(Reproduction& reproduction) {
  reproduction.add(encoder_cost_section());
  reproduction.add(resnet_section());
  reproduction.add(tiled_section());
  for (ReproductionSection& section : length_sections()) reproduction.add(std::move(section));
  reproduction.add(cpu_section());
  reproduction.add(energy_table_section(hw::find_machine("survey")));
  reproduction.add(memory_energy_section());
  reproduction.add(area_section(hw::find_machine("gemmini")));
  reproduction.add(four_heads_section());
  reproduction.add(decoder_cost_section());
  reproduction.add(convolution_section());
  reproduction.add(latency_section());
  reproduction.plots = analysis_plots();
}

void add_products(Reproduction& reproduction) {
  reproduction.add(measured_products_section(run_measured_products()));
}

void add_splits(Reproduction& reproduction) {
  const std::vector<SplitRun> runs = run_splits();
  reproduction.add(split_section(runs));
  reproduction.plots.push_back(split_plot(runs));
}

void add_encoder(Reproduction& reproduction) {
  const EncoderRuns runs = run_encoders();
  reproduction.add(baseline_section(runs));
  reproduction.add(optimised_section(runs));
  reproduction.add(quoted_case_section());
  reproduction.plots.push_back(shares_plot(runs));
}

void add_resnet(Reproduction& reproduction) {
  reproduction.add(simulated_resnet_section(run_resnet()));
}

void add_pruning(Reproduction& reproduction) { reproduction.add(pruning_section()); }

void add_mapping(Reproduction& reproduction) {
  hw::Machine machine = hw::find_machine("gemmini");
  machine.energy = hw::find_machine("survey").energy;
  reproduction.add(mapspace_section(machine));
  reproduction.add(fusion_section());
}

const std::vector<ReproductionPart> kParts = {
    {"analysis", add_analysis}, {"products", add_products}, {"splits", add_splits},
    {"encoder", add_encoder},   {"resnet", add_resnet},     {"pruning", add_pruning},
    {"mapping", add_mapping}};

}  // namespace

const std::vector<std::string>& survey_parts() {
  static const std::vector<std::string> names = part_names(kParts);
  return names;
}

const PublishedPaper& survey_paper() { return PublishedPaper::load("survey"); }

Reproduction reproduce_survey(const std::vector<std::string>& parts) {
  Reproduction reproduction = survey_paper().reproduction();
  add_parts(reproduction, kParts, parts);
  return reproduction;
}

}  // namespace systole::testbench

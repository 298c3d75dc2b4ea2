#include "testbench/reproduce/survey.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "hw/machine_file.h"
#include "testbench/reproduce/survey_plots.h"
#include "testbench/reproduce/survey_sections.h"

namespace systole::testbench {

Reproduction reproduce_survey() {
  Reproduction reproduction;
  reproduction.name = "survey";
  reproduction.inputs = {{"networks", "BERT-Base, BERT-Large, GPT-2, ResNet-50, by shape"}};
  std::vector<ReproductionSection>& sections = reproduction.sections;
  sections = {encoder_cost_section(), resnet_section(), tiled_section()};
  for (ReproductionSection& section : length_sections()) sections.push_back(std::move(section));
  sections.push_back(cpu_section());
  sections.push_back(energy_table_section(hw::find_machine("gemmini")));
  sections.push_back(four_heads_section());
  sections.push_back(decoder_cost_section());
  sections.push_back(convolution_section());
  sections.push_back(latency_section());
  reproduction.plots = survey_plots();
  return reproduction;
}

}  // namespace systole::testbench

#include "reproduce/fusion/fusion.h"

#include "reproduce/reproduction_parts.h"

namespace systole::testbench {
namespace {

void add_chains(Reproduction& reproduction) {
  reproduction.add(fusion_multiply_add_section());
  reproduction.add(fusion_chains_section());
}

void add_layer(Reproduction& reproduction) {
  reproduction.add(fusion_layer_section());
  reproduction.add(fusion_softmax_section());
  reproduction.add(fusion_bytes_section());
}

void add_models(Reproduction& reproduction) {
  const std::vector<FusedModels> machines = run_fused_models();
  for (const FusedModels& machine : machines) {
    reproduction.add(fusion_models_section(machine));
    reproduction.plots.push_back(fusion_plot(machine));
  }
  reproduction.add(fusion_article_section(machines));
}

const std::vector<ReproductionPart> kFusionParts = {
    {"chains", add_chains}, {"layer", add_layer}, {"models", add_models}};

}  // namespace

const std::vector<std::string>& fusion_parts() {
  static const std::vector<std::string> names = part_names(kFusionParts);
  return names;
}

const PublishedPaper& fusion_paper() { return PublishedPaper::load("fusion"); }

Reproduction reproduce_fusion(const std::vector<std::string>& parts) {
  Reproduction reproduction = fusion_paper().reproduction();
  add_parts(reproduction, kFusionParts, parts);
  return reproduction;
}

}  // namespace systole::testbench

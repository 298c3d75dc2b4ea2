/// The baseline of the survey's case study, whose host does what the array does not: Fig. 14, left.

#include "reproduce/study/encoder_shares.h"
#include "reproduce/survey/survey_published.h"
#include "reproduce/survey/survey_sections.h"

namespace systole::testbench {

ReproductionSection baseline_section(const EncoderRuns& runs) {
  ReproductionSection section{"Fig. 14, baseline, and 39.6 times faster", {}, {}};
  const auto add = [&](const char* name, double value, const char* key) {
    section.rows.push_back(compare(name, value, survey_published(key)));
  };
  const nlohmann::ordered_json& ours = runs.baseline;
  add("matmul", percent_of(ours, {TimeClass::kMatmul}), "before.matmul");
  add("matmul at 39.6 x", percent_of(ours, {TimeClass::kMatmul}), "before.matmul_implied");
  add("softmax", percent_of(ours, {TimeClass::kSoftmax}), "before.softmax");
  add("LayerNorm", percent_of(ours, {TimeClass::kLayerNorm}), "before.layernorm");
  add("residual add", percent_of(ours, {TimeClass::kResidual}), "before.residual");
  add("de/quantisation", percent_of(ours, {TimeClass::kConvert}), "before.convert");
  add("GELU", percent_of(ours, {TimeClass::kGelu}), "before.gelu");
  section.rows.push_back(
      measured("host waiting for lines", percent_of(ours, {TimeClass::kHostWait}), "%"));
  add("a baseline layer", per_layer(ours, "cycles"), "before.layer");
  add("utilisation", array_percent(ours), "before.utilisation");
  add("baseline to optimised", per_layer(ours, "cycles") / per_layer(runs.at_512, "cycles"),
      "speedup");
  section.notes = {
      "The host's costs are fitted: host.softmax_cycles, host.gelu_cycles, host.layernorm_cycles, "
      "host.add_cycles and host.convert_cycles of \"gemmini\" are what the survey's 39.6 times and "
      "the shares of its pie imply. That both come out again says that the model adds up, and "
      "predicts nothing.",
      "The pie's labels sum to 94 %. Its 1 % of matmul, and a utilisation far below 1 % in the "
      "text, cannot be with 39.6 times: they would make it 115 times."};
  return section;
}

}  // namespace systole::testbench

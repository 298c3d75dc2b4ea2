/// The survey's case study on Gemmini: Fig. 13 and 14, and products that others measured on RTL.

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "reproduce/study/encoder_shares.h"
#include "reproduce/survey/survey_published.h"
#include "reproduce/survey/survey_sections.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of(const MatmulShape& shape) {
  return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
}

}  // namespace

ReproductionSection measured_products_section(const SplitRun& run) {
  ReproductionSection section{"Products of BERT-Base, 128 tokens: cycles of the RTL", {}, {}};
  for (const ProductRun& product : run.products) {
    const std::string name = name_of(product.product.shape);
    section.rows.push_back(
        compare(name, static_cast<double>(product.cycles), survey_published("rtl." + name)));
  }
  section.rows.push_back(compare("utilisation of a layer", 100.0 * run.utilisation(),
                                 survey_published("rtl.utilisation")));
  section.notes.push_back(
      "M x N x K, one library call each on \"gemmini\" (256 KiB scratchpad, 64 KiB accumulator).");
  return section;
}

ReproductionSection split_section(const std::vector<SplitRun>& runs) {
  ReproductionSection section{"Fig. 13: utilisation by split of the SRAM", {}, {}};
  double squares = 0, from = 0, to = 0;
  for (const SplitRun& run : runs) {
    const Published& published =
        survey_published(fmt::format("split.{}.{}", run.scratchpad_kib, run.accumulator_kib));
    const double ours = 100.0 * run.utilisation();
    section.rows.push_back(compare(
        fmt::format("scratchpad {}, accumulator {}", run.scratchpad_kib, run.accumulator_kib), ours,
        published));
    squares += std::pow(ours - published.value, 2);
    if (run.scratchpad_kib == 256 && run.accumulator_kib == 64) from = run.layer_cycles();
    if (run.scratchpad_kib == 64 && run.accumulator_kib == 256) to = run.layer_cycles();
  }
  section.rows.push_back(compare("root mean square of the nine",
                                 std::sqrt(squares / static_cast<double>(runs.size())),
                                 survey_published("split.rms")));
  const double saved = 100.0 * (1.0 - to / from);
  section.rows.push_back(
      compare("256/64 to 64/256: cycles saved", saved, survey_published("split.saved")));
  section.rows.push_back(
      compare("the same, as the text has it", saved, survey_published("split.saved_text")));
  section.notes.push_back(
      "KiB; the products of a layer of 512 tokens, one library call each. The text says that the "
      "new "
      "split makes them take 36 % less. That cannot follow from the figure: from 69 to 91 % is "
      "24.2 % less, and from the worst of the nine to the best 27.5 %.");
  return section;
}

ReproductionSection optimised_section(const EncoderRuns& runs) {
  ReproductionSection section{"Fig. 14, optimised: BERT-Base, 512 tokens", {}, {}};
  const Json& ours = runs.at_512;
  const auto add = [&](const std::string& name, double value, const char* key) {
    section.rows.push_back(compare(name, value, survey_published(key)));
  };
  add("matmul and GELU", matmul_percent(ours), "after.matmul");
  add("softmax", percent_of(ours, {TimeClass::kSoftmax}), "after.softmax");
  add("LayerNorm", percent_of(ours, {TimeClass::kLayerNorm}), "after.layernorm");
  add("residual add", percent_of(ours, {TimeClass::kResidual}), "after.residual");
  add("matmul and GELU, l=128", matmul_percent(runs.at_128), "after.matmul_bars");
  add("matmul and GELU, l=256", matmul_percent(runs.at_256), "after.matmul_bars");
  add("a layer", per_layer(ours, "cycles"), "after.layer");
  add("softmax reads, a layer", per_layer(ours, "softmax_reads"), "after.softmax_reads");
  const auto beside = [&](const char* name, double value, const char* unit) {
    section.rows.push_back(measured(name, value, unit));
  };
  beside("deferred: softmax reads", per_layer(runs.deferred, "softmax_reads"), "vectors");
  beside("deferred: softmax", percent_of(runs.deferred, {TimeClass::kSoftmax}), "%");
  beside("deferred: a layer", per_layer(runs.deferred, "cycles"), "cycles");
  beside("BERT: matmul, GELU", matmul_percent(runs.unswapped), "%");
  beside("BERT: LayerNorm", percent_of(runs.unswapped, {TimeClass::kLayerNorm}), "%");
  beside("BERT: residual add", percent_of(runs.unswapped, {TimeClass::kResidual}), "%");
  beside("BERT: a layer", per_layer(runs.unswapped, "cycles"), "cycles");
  beside("all fused: matmul, GELU", matmul_percent(runs.fused), "%");
  beside("all fused: a layer", per_layer(runs.fused, "cycles"), "cycles");
  section.notes = {
      "On \"survey\", with what Gemmini's library does: softmax behind Q.K, GELU behind W1, a pass "
      "of its own for LayerNorm, int32 to bytes, and one that adds the residual, bytes to bytes. "
      "BERT adds first, so that the sum is as wide as the branch: its own order stands beside it.",
      "A cycle in which array and post-op unit work for different classes counts half for each; "
      "one in which neither works is of the operator that is waited for. Vectors of 16: three "
      "passes over h l^2 scores are 3 h l^2 / 16. Deferred: division after the product with V. All "
      "fused: mapper.fusion = \"all\", in BERT's order."};
  return section;
}

ReproductionSection quoted_case_section() {
  ReproductionSection section{"Of the case study: quoted, not claimed", {}, {}};
  const struct {
    const char* name;
    const char* key;
  } rows[] = {{"area of the normalisation units", "quoted.area"},
              {"their power", "quoted.power"},
              {"their latency", "quoted.latency"},
              {"energy-delay by architecture search", "quoted.edp"}};
  for (const auto& row : rows) {
    section.rows.push_back(compare(row.name, std::nullopt, survey_published(row.key)));
  }
  section.notes.push_back("No synthesis in 7 nm and no architecture search are here.");
  return section;
}

}  // namespace systole::testbench

/// The survey's case study on Gemmini: Fig. 13 and 14, and products that others measured on RTL;
/// and its section on mapping.

#include <fmt/format.h>

#include <cmath>

#include "reproduce/study/fusion_study.h"
#include "reproduce/study/mapspace.h"
#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMappings = 100'000, kSampleSeed = 1;

}  // namespace

ReproductionSection measured_products_section(const SplitRun& run) {
  Metrics metrics = {{"utilisation", 100.0 * run.utilisation()}};
  for (const ProductRun& product : run.products) {
    const MatmulShape& shape = product.product.shape;
    metrics[fmt::format("{}x{}x{}", shape.m, shape.n, shape.k)] =
        static_cast<double>(product.cycles);
  }
  return survey_paper().section("products", metrics);
}

ReproductionSection split_section(const std::vector<SplitRun>& runs) {
  std::vector<ResultRow> rows;
  double squares = 0, from = 0, to = 0;
  for (const SplitRun& run : runs) {
    const std::string scratchpad = fmt::format("scratchpad {}", run.scratchpad_kib);
    const std::string accumulator = fmt::format("accumulator {}", run.accumulator_kib);
    const Published& published = survey_paper().table("splits").cell(scratchpad, accumulator);
    const double ours = 100.0 * run.utilisation();
    rows.push_back(compare(scratchpad + ", " + accumulator, ours, published));
    squares += std::pow(ours - published.value, 2);
    if (run.scratchpad_kib == 256 && run.accumulator_kib == 64) from = run.layer_cycles();
    if (run.scratchpad_kib == 64 && run.accumulator_kib == 256) to = run.layer_cycles();
  }
  ReproductionSection section = survey_paper().section(
      "splits", {{"rms", std::sqrt(squares / static_cast<double>(runs.size()))},
                 {"saved", 100.0 * (1.0 - to / from)}});
  section.rows.insert(section.rows.begin(), rows.begin(), rows.end());
  return section;
}

ReproductionSection baseline_section(const EncoderRuns& runs) {
  const Json& ours = runs.baseline;
  return survey_paper().section(
      "baseline", {{"matmul", percent_of(ours, {TimeClass::kMatmul})},
                   {"softmax", percent_of(ours, {TimeClass::kSoftmax})},
                   {"layernorm", percent_of(ours, {TimeClass::kLayerNorm})},
                   {"residual", percent_of(ours, {TimeClass::kResidual})},
                   {"convert", percent_of(ours, {TimeClass::kConvert})},
                   {"gelu", percent_of(ours, {TimeClass::kGelu})},
                   {"waiting", percent_of(ours, {TimeClass::kHostWait})},
                   {"layer", per_layer(ours, "cycles")},
                   {"utilisation", array_percent(ours)},
                   {"faster", per_layer(ours, "cycles") / per_layer(runs.at_512, "cycles")}});
}

ReproductionSection optimised_section(const EncoderRuns& runs) {
  const Json& ours = runs.at_512;
  return survey_paper().section(
      "optimised", {{"matmul", matmul_percent(ours)},
                    {"softmax", percent_of(ours, {TimeClass::kSoftmax})},
                    {"layernorm", percent_of(ours, {TimeClass::kLayerNorm})},
                    {"residual", percent_of(ours, {TimeClass::kResidual})},
                    {"matmul, 128", matmul_percent(runs.at_128)},
                    {"matmul, 256", matmul_percent(runs.at_256)},
                    {"layer", per_layer(ours, "cycles")},
                    {"reads", per_layer(ours, "softmax_reads")},
                    {"deferred, reads", per_layer(runs.deferred, "softmax_reads")},
                    {"deferred, softmax", percent_of(runs.deferred, {TimeClass::kSoftmax})},
                    {"deferred, layer", per_layer(runs.deferred, "cycles")},
                    {"bert, matmul", matmul_percent(runs.unswapped)},
                    {"bert, layernorm", percent_of(runs.unswapped, {TimeClass::kLayerNorm})},
                    {"bert, residual", percent_of(runs.unswapped, {TimeClass::kResidual})},
                    {"bert, layer", per_layer(runs.unswapped, "cycles")},
                    {"fused, matmul", matmul_percent(runs.fused)},
                    {"fused, layer", per_layer(runs.fused, "cycles")}});
}

ReproductionSection quoted_case_section() { return survey_paper().section("quoted"); }

ReproductionSection mapspace_section(const hw::Machine& machine) {
  ReproductionSection section = survey_paper().section("mapspace");
  for (const analysis::MapspaceOperator& op : analysis::survey_mapspace_operators()) {
    const analysis::MapspaceStatistics found =
        analysis::sample_mapspace(op.shape, machine, kMappings, kSampleSeed);
    section.add(survey_paper()
                    .table("mapspace")
                    .compare_row(op.name,
                                 {found.decades, found.tenth_percentile, 100.0 * found.below_three},
                                 ", "));
  }
  return section;
}

ReproductionSection fusion_section() {
  std::vector<ResultRow> rows;
  Metrics metrics = {{"agree", 0}, {"cases", 0}};
  for (const analysis::FusionCase& study : analysis::survey_fusion_cases()) {
    const std::string name = study.text();
    const Published& published = survey_paper().table("fusion").cell(name, "change");
    const double ours = study.change();
    rows.push_back(compare(name, ours, published));
    metrics["agree"] += (ours < 0) == (published.value < 0) ? 1 : 0;
    metrics["cases"] += 1;
  }
  ReproductionSection section = survey_paper().section("fusion", metrics);
  section.rows.insert(section.rows.begin(), rows.begin(), rows.end());
  return section;
}

}  // namespace systole::testbench

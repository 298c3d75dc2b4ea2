/// The survey's section on mapping: random mappings and the fusion study.

#include <fmt/format.h>

#include <string>

#include "reproduce/study/fusion_study.h"
#include "reproduce/study/mapspace.h"
#include "reproduce/survey/survey_published.h"
#include "reproduce/survey/survey_sections.h"

namespace systole::testbench {
namespace {

constexpr std::uint64_t kMappings = 100'000, kSampleSeed = 1;

Published quoted(double value, std::string_view unit, std::string_view source) {
  return {"", value, std::string(unit), source, {}, {}};
}

}  // namespace

ReproductionSection mapspace_section(const hw::Machine& machine) {
  constexpr std::string_view kSource = "survey, section 5";
  ReproductionSection section{"100,000 random mappings of an operator", {}, {}};
  for (const analysis::MapspaceOperator& op : analysis::survey_mapspace_operators()) {
    const analysis::MapspaceStatistics found =
        analysis::sample_mapspace(op.shape, machine, kMappings, kSampleSeed);
    section.rows.push_back(
        compare(op.name + ", spread", found.decades, survey_published("mapspace.decades")));
    section.rows.push_back(compare(op.name + ", tenth", found.tenth_percentile,
                                   quoted(op.published_tenth_percentile, "x", kSource)));
    section.rows.push_back(compare(op.name + ", below 3 x", 100.0 * found.below_three,
                                   quoted(100.0 * op.published_below_three, "%", kSource)));
  }
  section.notes.push_back(
      "Tenth: the tenth percentile; below 3 x: the share of mappings. Energy times delay relative "
      "to the best found, tiles that divide the operator without rest, "
      "on \"gemmini\"; convolutions as products. Which mappings the survey draws from, and with "
      "which energies, it does not say, so that percentiles and shares stand for reference. What "
      "holds on both sides: a spread of about four decades, of BERT and ResNet-50 alike, and few "
      "mappings near the best.");
  return section;
}

ReproductionSection fusion_section() {
  ReproductionSection section{"Fusing with the operator behind: change of latency", {}, {}};
  double agree = 0, cases = 0;
  for (const analysis::FusionCase& study : analysis::survey_fusion_cases()) {
    const double ours = study.change();
    Published published = survey_published("fusion.change");
    published.value = study.published;
    section.rows.push_back(
        compare(fmt::format("{}, {}K, l={}", study.name, study.accumulator_kib, study.length), ours,
                published));
    agree += (ours < 0) == (study.published < 0) ? 1 : 0;
    ++cases;
  }
  Published signs = survey_published("fusion.signs");
  signs.value = cases;
  section.rows.push_back(compare("cases of the same sign", agree, signs));
  section.notes.push_back(
      "Accumulator of so many KiB. The survey does not state its assumptions; ours: 5.12 bytes a "
      "cycle of memory, 88 % of the array with 128 KiB and 90 % with 256, LayerNorm's sums in "
      "int32, three passes of 16 lanes, memory and array overlapped within an operator, and a "
      "fused tile of whole rows.");
  return section;
}

}  // namespace systole::testbench

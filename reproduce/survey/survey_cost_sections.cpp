/// FLOPs, bytes and their ratio: Tab. 3, 5, 10 and 11, Fig. 4 to 6.

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/transformer_cost.h"
#include "model/seeded/shapes.h"
#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

using analysis::CostSummary;
using analysis::OperatorClass;
using analysis::OperatorCost;

/// Tokens, of the tables' blocks.
constexpr std::uint32_t kBlocks[] = {128, 512, 4096};

std::string at(std::uint32_t length, std::string_view what) {
  return fmt::format("l={} {}", length, what);
}

void add_costs(ReproductionSection& section, const std::string& table, std::uint32_t length,
               const CostSummary& summary) {
  for (const OperatorCost& ours : summary.classes) {
    section.add(cost_rows(table, at(length, ours.name), ours));
  }
  section.add(cost_rows(table, at(length, "total"), summary.total));
}

void add_shares(ReproductionSection& section, const std::string& name, const CostSummary& summary,
                double OperatorCost::*figure) {
  std::vector<double> percent;
  for (const OperatorCost& part : summary.classes) {
    percent.push_back(100.0 * part.*figure / summary.total.*figure);
  }
  section.add(survey_paper().table("shares").compare_row(name, percent, ", "));
}

/// A chart of `figure` of the totals.
ReproductionSection length_section(int number, const char* what,
                                   double (*figure)(const OperatorCost&)) {
  const PublishedTable& chart = survey_paper().table(fmt::format("fig{}", number));
  ReproductionSection section =
      survey_paper().section("lengths", {}, {{"figure", std::to_string(number)}, {"what", what}});
  for (std::size_t network = 0; network < kSurveyNetworks; ++network) {
    const std::uint32_t counted = survey_projections(network);
    for (const std::uint32_t length : kSurveyLengths) {
      const std::string point = fmt::format("l={}", length);
      const auto add = [&](std::uint32_t projections, const std::string& suffix) {
        const std::string name(kSurveyNetworkNames[network]);
        const CostSummary ours =
            analysis::summarise(survey_ideal_costs(network, length, projections));
        section.rows.push_back(compare(fmt::format("{}, {}{}", name, point, suffix),
                                       figure(ours.total), chart.cell(point, name + suffix)));
      };
      add(counted, "");
      if (counted != 4) add(4, ", all projections");
    }
  }
  return section;
}

}  // namespace

std::vector<ResultRow> cost_rows(const std::string& table, const std::string& name,
                                 const OperatorCost& ours) {
  std::vector<ResultRow> rows = survey_paper().table(table).compare_row(
      name, {kGiga * ours.flops, kGiga * ours.bytes, ours.intensity()}, ", ");
  rows.erase(
      std::remove_if(rows.begin(), rows.end(), [](const ResultRow& row) { return !row.published; }),
      rows.end());
  return rows;
}

ReproductionSection encoder_cost_section() {
  ReproductionSection section = survey_paper().section("encoder");
  const model::EncoderShape shape = model::find_shape("bert-base");
  for (const std::uint32_t length : kBlocks) {
    const CostSummary summary = analysis::summarise(analysis::ideal_costs({shape, length}));
    add_costs(section, "tab3", length, summary);
    add_shares(section, at(length, "FLOPs"), summary, &OperatorCost::flops);
    add_shares(section, at(length, "bytes"), summary, &OperatorCost::bytes);
  }
  return section;
}

ReproductionSection four_heads_section() {
  ReproductionSection section = survey_paper().section("four-heads");
  model::EncoderShape shape = model::find_shape("bert-base");
  shape.heads = 4;
  for (const std::uint32_t length : kBlocks) {
    const CostSummary summary = analysis::summarise(analysis::ideal_costs({shape, length}));
    section.add(cost_rows("tab10", at(length, "total"), summary.total));
    for (const OperatorClass kind : {OperatorClass::kAttention, OperatorClass::kOther}) {
      section.add(cost_rows("tab10", at(length, name_of(kind)), summary.of(kind)));
    }
  }
  return section;
}

ReproductionSection decoder_cost_section() {
  ReproductionSection section = survey_paper().section("decoder");
  const model::EncoderShape shape = model::find_shape("gpt2");
  for (const std::uint32_t length : kBlocks) {
    add_costs(section, "tab11", length, analysis::summarise(analysis::decode_costs(shape, length)));
  }
  return section;
}

std::vector<ReproductionSection> length_sections() {
  return {length_section(4, "FLOPs", [](const OperatorCost& total) { return kGiga * total.flops; }),
          length_section(5, "bytes", [](const OperatorCost& total) { return kGiga * total.bytes; }),
          length_section(6, "FLOPs per byte",
                         [](const OperatorCost& total) { return total.intensity(); })};
}

ReproductionSection tiled_section() {
  ReproductionSection section = survey_paper().section("tiles");
  const model::EncoderShape shape = model::find_shape("bert-base");
  for (const std::uint32_t length : kBlocks) {
    const std::vector<OperatorCost> costs = analysis::tiled_costs({shape, length}, {});
    std::vector<double> ours;
    for (const char* name : {"query", "scores", "context", "output", "W1", "W2"}) {
      const auto product = std::find_if(
          costs.begin(), costs.end(), [&](const OperatorCost& cost) { return cost.name == name; });
      if (product == costs.end()) throw std::logic_error("no product of that name");
      ours.push_back(product->intensity());
    }
    ours.push_back(analysis::summarise(costs).total.intensity());
    section.add(survey_paper().table("tab5").compare_row(fmt::format("l={}", length), ours, " "));
  }
  return section;
}

}  // namespace systole::testbench

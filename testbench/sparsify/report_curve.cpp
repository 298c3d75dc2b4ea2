#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "testbench/common/text.h"
#include "testbench/sparsify/sparsity_curve.h"

namespace systole::testbench {
namespace {

/// A share of the whole, "-" if there is none.
std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f}%", 100.0 * *share) : "-";
}

/// What a table of the quality shows: accuracies of pictures, errors of texts.
bool has_error(const SparsityCurve& curve) {
  return curve.points.front().quality.error.has_value();
}

/// A cell of a file of values; empty if there is none.
std::string csv_cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string rule_words(const SparsityCurve& curve) {
  return fmt::format("{}, {} beyond theta{}",
                     curve.rule.per_head ? "every head alike" : "one theta for all heads",
                     counted(curve.margin, "more entry", "more entries"),
                     curve.rule.cls ? ", CLS row and column kept" : "");
}

}  // namespace

std::string quality_text(const MaskQuality& quality) {
  Table table(quality.masked.error ? "quality | >error" : "quality | >fp32 | >integer");
  const auto add = [&](const char* name, const TaskQuality& one) {
    if (one.error) table.add({name, share_text(one.error)});
    if (one.real) table.add({name, share_text(one.real), share_text(one.integer)});
  };
  add("without the mask", quality.dense);
  add("under the mask", quality.masked);
  add("under a random mask", quality.shuffled);
  return quality.masked.error || quality.masked.real ? table.text() : "";
}

std::string curve_text(const SparsityCurve& curve) {
  FactList facts;
  facts.add("model", hw::printable(curve.model));
  facts.add("attention", fmt::format("{} (layers x heads x queries x keys), average of {}",
                                     curve.shape.text(), counted(curve.inputs, "input")));
  facts.add("masks", rule_words(curve));
  facts.add("shuffled", fmt::format("as many cells at random in every head, seed {}", curve.seed));
  facts.add("machine", hw::printable(curve.machine) + ", timing of one inference");
  const bool error = has_error(curve);
  Table table(error ? ">sparsity | >error | >shuffled | >cycles | >attention | >energy"
                    : ">sparsity | >fp32 | >integer | >shuffled | >cycles | >attention | >energy");
  for (const CurvePoint& point : curve.points) {
    std::vector<std::string> cells{fmt::format("{:.2f}%", 100.0 * point.sparsity)};
    if (error) {
      cells.push_back(share_text(point.quality.error));
      cells.push_back(share_text(point.shuffled.error));
    } else {
      cells.push_back(share_text(point.quality.real));
      cells.push_back(share_text(point.quality.integer));
      cells.push_back(share_text(point.shuffled.real));
    }
    cells.push_back(grouped_rounded(point.cycles));
    cells.push_back(grouped_rounded(point.attention_cycles));
    cells.push_back(with_prefix(point.joules, "J"));
    table.add(std::move(cells));
  }
  return facts.text() + "\n" + table.text() + "\n" +
         paragraph(error ? "Error: of the hidden states, to those without a mask. Nothing is "
                           "fine-tuned."
                         : "Accuracies are of the labelled inputs; nothing is fine-tuned.") +
         "\n";
}

std::string curve_csv(const SparsityCurve& curve) {
  std::string text =
      "sparsity,accuracy,integer_accuracy,shuffled_accuracy,hidden_error,shuffled_hidden_error,"
      "cycles,attention_cycles,energy_joules\n";
  for (const CurvePoint& point : curve.points) {
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{}\n", point.sparsity, csv_cell(point.quality.real),
                    csv_cell(point.quality.integer), csv_cell(point.shuffled.real),
                    csv_cell(point.quality.error), csv_cell(point.shuffled.error), point.cycles,
                    point.attention_cycles, point.joules);
  }
  return text;
}

Plot curve_plot(const SparsityCurve& curve) {
  const bool error = has_error(curve);
  const CurvePoint& first = curve.points.front();
  std::string rows;
  for (const CurvePoint& point : curve.points) {
    const std::optional<double>& ours = error ? point.quality.error : point.quality.real;
    const std::optional<double>& random = error ? point.shuffled.error : point.shuffled.real;
    const auto percent_of = [](const std::optional<double>& value) {
      return value ? fmt::format("{}", 100.0 * *value) : std::string("NaN");
    };
    rows += fmt::format("{} {} {} {} {} {}\n", 100.0 * point.sparsity, percent_of(ours),
                        percent_of(random), 100.0 * point.cycles / first.cycles,
                        100.0 * point.attention_cycles / std::max(1.0, first.attention_cycles),
                        100.0 * point.joules / first.joules);
  }
  return {"sparsity_curve.png", 1200, 700,
          fmt::format("model = {}\nmachine = {}\nquality = {}\n", gnuplot_quoted(curve.model),
                      gnuplot_quoted(curve.machine),
                      gnuplot_quoted(error ? "error of hidden states" : "accuracy")) +
              data_block("curve", rows),
          "sparsity_curve"};
}

}  // namespace systole::testbench

/// Pictures of the survey's case study.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

constexpr const char* kCaseStyle =
    "set grid ytics lc rgb '#dddddd'\nset border 3\nset tics nomirror\nset yrange [0:100]\n"
    "set style data histograms\nset style fill solid noborder\n";

/// One colour of the bars.
struct Part {
  const char* name;
  const char* colour;
  std::vector<TimeClass> kinds;
  double before, after;  ///< published; 0: not there
};

/// The shares of one machine's time, published and ours, as two rows of gnuplot's data.
std::string bars_of(const std::vector<Part>& parts, const std::string& machine,
                    const nlohmann::ordered_json& encoder, double Part::*figure) {
  std::string published = fmt::format("\"{}, published\"", machine);
  std::string ours = fmt::format("\"{}, simulated\"", machine);
  for (const Part& part : parts) {
    published += fmt::format(" {}", part.*figure);
    ours += fmt::format(" {:.2f}", percent_of(encoder, part.kinds));
  }
  return published + "\n" + ours + "\n";
}

}  // namespace

Plot split_plot(const std::vector<SplitRun>& runs) {
  std::string data;
  for (const SplitRun& run : runs) {
    data += fmt::format(
        "\"{} / {}\" {:.2f} {}\n", run.scratchpad_kib, run.accumulator_kib,
        100.0 * run.utilisation(),
        survey_paper().table("splits").value(fmt::format("scratchpad {}", run.scratchpad_kib),
                                             fmt::format("accumulator {}", run.accumulator_kib)));
  }
  Plot plot;
  plot.file = "survey_splits.png";
  plot.width = 1000;
  plot.height = 560;
  plot.script = fmt::format(
      "$splits << EOD\n{}EOD\n{}"
      "set title 'Utilisation of the array by split of the SRAM' font ',15'\n"
      "set xlabel 'scratchpad / accumulator (KiB)'\nset ylabel '% of 256 MACs a cycle'\n"
      "set style histogram clustered gap 1\n"
      "set key outside right top reverse Left\n"
      "plot $splits using 2:xtic(1) lc rgb '#2166ac' title 'simulated', "
      "$splits using 3 lc rgb '#bbbbbb' title 'published'\n",
      data, kCaseStyle);
  return plot;
}

Plot shares_plot(const EncoderRuns& runs) {
  // GELU runs after a matmul on chip, and of its own on the host.
  const auto published = [](const char* key) { return survey_paper().figure(key).value; };
  std::vector<Part> parts = {
      {"matmul (on chip with GELU)",
       "#2166ac",
       {TimeClass::kMatmul},
       published("before.matmul"),
       published("after.matmul")},
      {"GELU on the host", "#dfc27d", {TimeClass::kGelu}, published("before.gelu"), 0},
      {"softmax",
       "#d95f0e",
       {TimeClass::kSoftmax},
       published("before.softmax"),
       published("after.softmax")},
      {"LayerNorm",
       "#5aae61",
       {TimeClass::kLayerNorm},
       published("before.layernorm"),
       published("after.layernorm")},
      {"residual add",
       "#762a83",
       {TimeClass::kResidual},
       published("before.residual"),
       published("after.residual")},
      {"de/quantisation", "#b2182b", {TimeClass::kConvert}, published("before.convert"), 0},
      {"host waiting for lines", "#888888", {TimeClass::kHostWait}, 0, 0}};
  std::string data = bars_of(parts, "baseline", runs.baseline, &Part::before);
  parts[0].kinds = {TimeClass::kMatmul, TimeClass::kGelu};
  parts[1].kinds = {};
  data += bars_of(parts, "optimised", runs.at_512, &Part::after);
  std::string bars;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bars += fmt::format("{} using {}{} lc rgb '{}' title {}", i == 0 ? "$shares" : ", ''", i + 2,
                        i == 0 ? ":xtic(1)" : "", parts[i].colour, gnuplot_quoted(parts[i].name));
  }
  Plot plot;
  plot.file = "survey_shares.png";
  plot.width = 1000;
  plot.height = 600;
  plot.script = fmt::format(
      "$shares << EOD\n{}EOD\n{}"
      "set title 'Where the time of BERT-Base goes, 512 tokens' font ',15'\n"
      "set ylabel '% of the time'\nset yrange [0:102]\nset style histogram rowstacked\n"
      "set boxwidth 0.6\nset xtics rotate by -20\n"
      "set key outside right top reverse Left invert\nplot {}\n",
      data, kCaseStyle, bars);
  return plot;
}

}  // namespace systole::testbench

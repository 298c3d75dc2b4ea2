#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>

#include "analysis/operator_cost.h"
#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

using analysis::OperatorCost;

constexpr std::array<const char*, kSurveyNetworks> kNetworkColours = {"#2166ac", "#5aae61",
                                                                      "#d95f0e"};
constexpr const char* kSurveyStyle =
    "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\nset logscale xy\n"
    "set xtics (128, 256, 512, 1024, 2048, 4096)\nset xrange [110:4800]\n"
    "set xlabel 'tokens'\nset format y '%g'\n";

/// Value of a network at a length.
using Curve = std::function<double(std::size_t network, std::uint32_t length)>;

/// One panel: its data by network, and what draws it.
struct SurveyPanel {
  std::string data, commands;
};

SurveyPanel panel_of(const std::string& name, const std::string& chart, const std::string& label,
                     const Curve& ours) {
  SurveyPanel panel;
  std::string plots;
  for (std::size_t network = 0; network < kSurveyNetworks; ++network) {
    panel.data += fmt::format("${}{} << EOD\n", name, network);
    for (const std::uint32_t length : kSurveyLengths) {
      panel.data += fmt::format("{} {} {}\n", length, ours(network, length),
                                survey_paper().table(chart).value(fmt::format("l={}", length),
                                                                  kSurveyNetworkNames[network]));
    }
    panel.data += "EOD\n";
    plots += fmt::format(
        "{}${}{} using 1:2 with lines lw 2 lc rgb '{}' title {}, "
        "${}{} using 1:3 with points pt 7 ps 1.3 lc rgb '{}' notitle",
        network == 0 ? "" : ", ", name, network, kNetworkColours[network],
        gnuplot_quoted(std::string(kSurveyNetworkNames[network])), name, network,
        kNetworkColours[network]);
  }
  panel.commands = fmt::format(
      "set ylabel {}\nplot {}, NaN with points pt 7 lc rgb '#555555' "
      "title 'published'\n",
      gnuplot_quoted(label), plots);
  return panel;
}

Curve total(double (*figure)(const OperatorCost&)) {
  return [figure](std::size_t network, std::uint32_t length) {
    return figure(
        analysis::summarise(survey_ideal_costs(network, length, survey_projections(network)))
            .total);
  };
}

Plot lengths_plot() {
  const SurveyPanel flops = panel_of(
      "flops", "fig4", "GFLOP", total([](const OperatorCost& all) { return 1e-9 * all.flops; }));
  const SurveyPanel bytes = panel_of(
      "bytes", "fig5", "GB moved", total([](const OperatorCost& all) { return 1e-9 * all.bytes; }));
  const SurveyPanel ratio =
      panel_of("ratio", "fig6", "FLOP per byte",
               total([](const OperatorCost& all) { return all.intensity(); }));
  Plot plot;
  plot.file = "survey_lengths.png";
  plot.width = 1500;
  plot.height = 560;
  plot.script = fmt::format(
      "{}{}{}{}set xtics rotate by -35\n"
      "set multiplot layout 1,3 title 'What an inference takes, by length' font ',15'\n"
      "set key inside left top Left reverse\n{}set key inside right bottom\n{}"
      "set key inside right center\n{}unset multiplot\n",
      flops.data, bytes.data, ratio.data, kSurveyStyle, flops.commands, bytes.commands,
      ratio.commands);
  return plot;
}

Plot latency_plot() {
  const double unit = survey_cycles(0, 128);
  const SurveyPanel panel = panel_of("latency", "fig32", "latency, BERT-Base of 128 tokens: 1",
                                     [unit](std::size_t network, std::uint32_t length) {
                                       return survey_cycles(network, length) / unit;
                                     });
  Plot plot;
  plot.file = "survey_latency.png";
  plot.width = 900;
  plot.height = 600;
  plot.script = fmt::format(
      "{}{}set key inside left top Left reverse\n"
      "set title 'Latency by the analytical model' font ',15'\n{}",
      panel.data, kSurveyStyle, panel.commands);
  return plot;
}

}  // namespace

std::vector<Plot> analysis_plots() { return {lengths_plot(), latency_plot()}; }

}  // namespace systole::testbench

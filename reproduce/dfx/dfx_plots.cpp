/// Pictures of `systole reproduce dfx`.

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

constexpr const char* kStyle =
    "set grid xtics ytics lt 1 lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
    "set key outside right top reverse Left spacing 1.3\nset logscale xy\n"
    "set ytics (0.2, 0.5, 1, 2, 5, 10, 20)\nset format y '%g'\nset ylabel 'ms a pass'\n";

/// How gnuplot draws a curve. Blue is 345M, orange 1.5B; the lighter ones are of the better case.
constexpr const char* kBlue = "lc rgb '#2166ac'";
constexpr const char* kOrange = "lc rgb '#d95f0e'";
constexpr const char* kLightBlue = "lc rgb '#92c5de'";
constexpr const char* kLightOrange = "lc rgb '#fdae6b'";
constexpr const char* kDashedBlue = "lc rgb '#2166ac' dt 2";
constexpr const char* kDashedOrange = "lc rgb '#d95f0e' dt 2";
constexpr const char* kDashedLightBlue = "lc rgb '#92c5de' dt 2";
constexpr const char* kDashedLightOrange = "lc rgb '#fdae6b' dt 2";

/// A chart of all curves over x times `unit`, in `styles`; `published` is drawn with them.
struct Chart {
  const char* file;
  const char* title;
  std::string axes;
  double unit = 1.0;
  std::vector<const char*> styles;
  std::string published_data, published_line;
};

Plot plot_of(const Chart& chart, const std::vector<DfxCurve>& curves) {
  std::string data, lines;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    data += fmt::format("$curve{} << EOD\n", i);
    for (std::size_t k = 0; k < curves[i].x.size(); ++k) {
      data += fmt::format("{} {}\n", chart.unit * curves[i].x[k],
                          curves[i].runs[k].pass_milliseconds());
    }
    data += "EOD\n";
    lines += fmt::format("{}$curve{} using 1:2 with linespoints pt 7 ps 0.9 lw 2 {} title {}",
                         i == 0 ? "" : ", ", i, chart.styles.at(i), gnuplot_quoted(curves[i].name));
  }
  Plot plot;
  plot.file = chart.file;
  plot.width = 1000;
  plot.height = 560;
  plot.script =
      fmt::format("{}{}{}set title {} font ',15'\n{}plot {}{}\n", data, chart.published_data,
                  kStyle, gnuplot_quoted(chart.title), chart.axes, lines, chart.published_line);
  return plot;
}

Plot cores_plot(const std::vector<DfxCurve>& curves) {
  Chart chart;
  chart.file = "dfx_cores.png";
  chart.title = "A pass of GPT-2 by cores";
  chart.axes =
      "set xlabel 'cores'\nset xtics (1, 2, 4, 8, 16)\nset xrange [0.9:18]\n"
      "set yrange [0.35:25]\n";
  chart.styles = {kBlue,      kOrange,      kDashedBlue,      kDashedOrange,
                  kLightBlue, kLightOrange, kDashedLightBlue, kDashedLightOrange};
  chart.published_data = "$published << EOD\n";
  for (const std::uint32_t cores : kDfxCores) {
    chart.published_data +=
        fmt::format("{} {}\n", cores, dfx_paper().figure(fmt::format("pass.{}", cores)).value);
  }
  chart.published_data += "EOD\n";
  chart.published_line =
      ", $published using 1:2 with points pt 3 ps 2 lc rgb '#000000' "
      "title '345M, measured on DFX'";
  return plot_of(chart, curves);
}

Plot memory_plot(const std::vector<DfxCurve>& curves) {
  Chart chart;
  chart.file = "dfx_memory.png";
  chart.title = "A pass of GPT-2 by the rate of the HBM";
  chart.axes =
      "set xlabel 'GB/s of a core'\nset xtics (230, 460, 920, 1840)\nset xrange [210:2000]\n";
  chart.unit = dfx_paper().figure("hbm.peak").value;
  chart.styles = {kBlue, kOrange, kLightBlue, kLightOrange};
  return plot_of(chart, curves);
}

Plot hops_plot(const std::vector<DfxCurve>& curves) {
  Chart chart;
  chart.file = "dfx_hops.png";
  chart.title = "A pass of GPT-2 on four cores by the latency of a hop";
  chart.axes = "set xlabel 'us of a hop'\nset xtics (0.1, 0.3, 0.5, 1, 2)\nset xrange [0.09:2.2]\n";
  chart.styles = {kBlue, kLightBlue, kOrange, kLightOrange};
  return plot_of(chart, curves);
}

}  // namespace

std::vector<Plot> dfx_what_if_plots(const DfxWhatIf& runs) {
  return {cores_plot(runs.cores), memory_plot(runs.memory), hops_plot(runs.hops)};
}

Plot dfx_shares_plot(const std::vector<DfxRun>& runs) {
  constexpr std::array<const char*, hw::dfx::kPhases> kPhaseColours = {
      "#888888", "#5aae61", "#2166ac", "#92c5de", "#762a83", "#b2182b", "#dfc27d"};
  std::string data = "$passes << EOD\n", bars;
  for (const DfxRun& run : runs) {
    data += fmt::format("\"{}\"", run.task.name);
    for (std::size_t i = 0; i < hw::dfx::kPhases; ++i) {
      data += fmt::format(" {:.4f}",
                          run.pass_milliseconds() * run.share(static_cast<hw::dfx::Phase>(i)));
    }
    data += "\n";
  }
  data += "EOD\n";
  for (std::size_t i = 0; i < hw::dfx::kPhases; ++i) {
    bars += fmt::format("{} using {}{} lc rgb '{}' title {}", i == 0 ? "$passes" : ", ''", i + 2,
                        i == 0 ? ":xtic(1)" : "", kPhaseColours[i],
                        gnuplot_quoted(std::string(name_of(static_cast<hw::dfx::Phase>(i)))));
  }
  Plot plot;
  plot.file = "dfx_shares.png";
  plot.width = 1000;
  plot.height = 560;
  plot.script = fmt::format(
      "{}set grid ytics lt 1 lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
      "set style data histograms\nset style histogram rowstacked\nset style fill solid noborder\n"
      "set boxwidth 0.6\nset yrange [0:*]\nset xtics rotate by -20\nset ylabel 'ms a pass'\n"
      "set key outside right top reverse Left invert\n"
      "set title 'Where the time of a pass goes' font ',15'\nplot {}\n",
      data, bars);
  return plot;
}

}  // namespace systole::testbench

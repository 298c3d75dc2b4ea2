/// Pictures of the survey's case study.

#include <fmt/format.h>

#include <string>

#include "testbench/reproduce/survey_plots.h"
#include "testbench/reproduce/survey_published.h"

namespace systole::testbench {
namespace {

constexpr const char* kStyle =
    "set grid ytics lc rgb '#dddddd'\nset border 3\nset tics nomirror\nset yrange [0:100]\n"
    "set style data histograms\nset style fill solid noborder\n";

}  // namespace

Plot split_plot(const std::vector<SplitRun>& runs) {
  std::string data;
  for (const SplitRun& run : runs) {
    data += fmt::format(
        "\"{} / {}\" {:.2f} {}\n", run.scratchpad_kib, run.accumulator_kib,
        100.0 * run.utilisation(),
        survey_published(fmt::format("split.{}.{}", run.scratchpad_kib, run.accumulator_kib))
            .value);
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
      data, kStyle);
  return plot;
}

}  // namespace systole::testbench

/// The picture of `systole reproduce fusion`.

#include <fmt/format.h>

#include "reproduce/fusion/fusion.h"

namespace systole::testbench {
namespace {

constexpr std::array<const char*, kFusionSteps> kStepColours = {"#888888", "#92c5de", "#2166ac"};

/// Bars of every model, relative to no fusion.
std::string bars(const char* label, const char* data) {
  std::string lines;
  for (std::size_t i = 0; i < kFusionSteps; ++i) {
    lines += fmt::format("{}{} using {}{} lc rgb '{}' title '{}'", i == 0 ? "" : ", ",
                         i == 0 ? data : "''", i + 2, i == 0 ? ":xtic(1)" : "", kStepColours.at(i),
                         kFusionStepNames.at(i).name);
  }
  return fmt::format("set ylabel '{}'\nplot {}\n", label, lines);
}

std::string fusion_data(const char* name, const FusedModels& models,
                        std::uint64_t FusionRun::*figure) {
  std::string data = fmt::format("{} << EOD\n", name);
  for (const FusedModels::Model& model : models.models) {
    data += fmt::format("\"{}\"", model.name);
    for (const FusionRun& run : model.runs) {
      data += fmt::format(" {:.4f}", 100.0 * static_cast<double>(run.*figure) /
                                         static_cast<double>(model.runs[0].*figure));
    }
    data += "\n";
  }
  return data + "EOD\n";
}

}  // namespace

Plot fusion_plot(const FusedModels& models) {
  Plot plot;
  plot.file = fmt::format("fusion_{}.png", models.machine);
  plot.width = 1100;
  plot.height = 700;
  plot.script = fmt::format(
      "{}{}set grid ytics lt 1 lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
      "set style data histograms\nset style histogram clustered gap 1\n"
      "set style fill solid noborder\nset yrange [0:110]\nset xtics rotate by -20\n"
      "set key outside right top Left reverse\n"
      "set multiplot layout 2,1 title 'Fusion on {}: off, after anchors, everywhere'\n{}{}"
      "unset multiplot\n",
      fusion_data("$cycles", models, &FusionRun::cycles),
      fusion_data("$bytes", models, &FusionRun::moved_bytes), models.machine,
      bars("% of the cycles", "$cycles"), bars("% of the bytes", "$bytes"));
  return plot;
}

}  // namespace systole::testbench

/// The picture of `systole reproduce fusion`.

#include <fmt/format.h>

#include "reproduce/fusion/fusion.h"

namespace systole::testbench {
namespace {

/// A row per model, relative to no fusion.
std::string fusion_data(const char* name, const FusedModels& models,
                        std::uint64_t FusionRun::*figure) {
  std::string data = "model";
  for (const auto& step : kFusionStepNames) data += fmt::format(" {}", step.name);
  for (const FusedModels::Model& model : models.models) {
    data += fmt::format("\n\"{}\"", model.name);
    for (const FusionRun& run : model.runs) {
      data += fmt::format(" {:.4f}", 100.0 * static_cast<double>(run.*figure) /
                                         static_cast<double>(model.runs[0].*figure));
    }
  }
  return data_block(name, data + "\n");
}

}  // namespace

Plot fusion_plot(const FusedModels& models) {
  return {fmt::format("fusion_{}.png", models.machine), 1100, 700,
          fusion_data("cycles", models, &FusionRun::cycles) +
              fusion_data("bytes", models, &FusionRun::moved_bytes) +
              fmt::format("machine = {}\n", gnuplot_quoted(models.machine)),
          "fusion"};
}

}  // namespace systole::testbench

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "reproduce/vitcod/vitcod.h"
#include "testbench/attention/head_split.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

/// By layer: what the engines did, and where the cycles went.
Plot cycles_plot(const std::string& mask, const Json& document) {
  const Json& layers = document.at("layers");
  std::string rows = "layer SDDMM SpMM active";
  for (const auto& [cause, cycles] : layers.at(0).at("stalled").items()) {
    std::string name = cause;
    std::replace(name.begin(), name.end(), '_', ' ');
    rows += fmt::format(" \"{}\"", name);
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const Json& entry = layers[layer];
    double work = entry.at("cycles").get<double>();
    std::string stalls;
    for (const auto& [cause, cycles] : entry.at("stalled").items()) {
      work -= cycles.get<double>();
      stalls += fmt::format(" {}", cycles.get<double>());
    }
    rows += fmt::format("\n{} {} {} {}{}", layer, entry.at("sddmm_cycles").get<double>(),
                        entry.at("spmm_cycles").get<double>(), work, stalls);
  }
  return {"vitcod_cycles.png", 1200, 700,
          fmt::format("mask = {}\n", gnuplot_quoted(mask)) + data_block("layers", rows + "\n"),
          "vitcod_cycles"};
}

Plot sparsity_plot(const VitcodSubject& subject, const VitcodRuns& runs) {
  std::string rows;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const double ours = cycles_of(runs.sweep_reordered[i]);
    const RivalCycles& rivals = runs.sweep_rivals[i];
    const std::string to_spatten =
        rivals.spatten ? fmt::format("{}", static_cast<double>(rivals.spatten->total) / ours)
                       : "NaN";
    rows +=
        fmt::format("{} {} {} {} {}\n", subject.sweep[i].percent,
                    cycles_of(runs.sweep_dense) / ours, cycles_of(runs.sweep_unordered[i]) / ours,
                    static_cast<double>(rivals.sanger.total) / ours, to_spatten);
  }
  return {"vitcod_sparsity.png", 1200, 700,
          fmt::format("maps = {}\nsanger = {}\nspatten = {}\n", gnuplot_quoted(subject.maps_name),
                      vitcod_paper().figure("sanger.90").value,
                      vitcod_paper().figure("spatten.90").value) +
              data_block("sweep", rows),
          "vitcod_sparsity"};
}

/// Decoder MACs over the memory's bytes per cycle: a block for each model.
Plot break_even_plot(const VitcodRuns& runs) {
  std::vector<std::string> models;
  std::string slopes, data;
  std::string_view last;
  for (const LinkBreakEven& point : runs.break_even) {
    if (point.array) continue;
    const AutoEncoder& heads = point.found.auto_encoder;
    if (point.model != last) {
      last = point.model;
      slopes += fmt::format(" {}", heads.latent_heads);
      models.push_back(
          fmt::format("x \"{}, {} -> {} heads\"\n", point.model, heads.heads, heads.latent_heads));
    }
    models.back() += fmt::format("{} {}\n", point.found.bytes_per_cycle, point.found.decoder_macs);
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    data += data_block(fmt::format("model{}", i + 1), models[i]);
  }
  return {"vitcod_break_even.png", 1200, 700, fmt::format("slopes = '{}'\n", slopes) + data,
          "vitcod_break_even"};
}

}  // namespace

std::vector<Plot> vitcod_plots(const VitcodSubject& subject, const VitcodRuns& runs) {
  std::vector<Plot> plots = {
      mask_plot("vitcod_mask.png", "Attention mask: " + subject.mask_name, subject.mask,
                split_mask(subject.mask, {}, subject.mask_dim, subject.machine.attention)),
      cycles_plot(subject.mask_name, runs.reordered), break_even_plot(runs)};
  if (!subject.sweep.empty()) plots.push_back(sparsity_plot(subject, runs));
  return plots;
}

}  // namespace systole::testbench

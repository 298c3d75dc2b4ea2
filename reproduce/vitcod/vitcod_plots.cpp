#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

#include "reproduce/vitcod/vitcod.h"
#include "testbench/attention/head_split.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVitcodStyle =
    "set grid ytics lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
    "set key outside right top reverse Left spacing 1.3\n";

/// Two bars for a layer: what the engines did, and where the cycles went.
Plot cycles_plot(const std::string& mask, const Json& document) {
  const Json& layers = document.at("layers");
  std::string data, causes;
  const auto& first = layers.at(0).at("stalled");
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const Json& entry = layers[layer];
    double work = entry.at("cycles").get<double>();
    std::string stalls;
    for (const auto& [cause, cycles] : entry.at("stalled").items()) {
      work -= cycles.get<double>();
      stalls += fmt::format(" {}", cycles.get<double>());
    }
    data += fmt::format("{} {} {} {}{}\n", layer, entry.at("sddmm_cycles").get<double>(),
                        entry.at("spmm_cycles").get<double>(), work, stalls);
  }
  // Stacked: the tallest first, each further one before it.
  constexpr const char* kColours[] = {"#8c510a", "#35978f", "#dfc27d", "#b2182b", "#762a83"};
  std::size_t column = 5;
  for (auto cause = first.begin(); cause != first.end(); ++cause, ++column) {
    std::string name = cause.key();
    for (char& c : name) c = c == '_' ? ' ' : c;
    causes =
        fmt::format(
            ", $layers using ($1+0.2):(sum [c=4:{}] column(c)) with boxes lc rgb '{}' title {}",
            column, kColours[(column - 5) % std::size(kColours)],
            gnuplot_quoted("stalled: " + name)) +
        causes;
  }
  Plot plot;
  plot.file = "vitcod_cycles.png";
  plot.script = fmt::format(
      "$layers << EOD\n{}EOD\n{}"
      "set title {} font ',15'\nset xlabel 'layer: left by phase, right by what the lines did'\n"
      "set ylabel 'core cycles'\nset boxwidth 0.36\nset style fill solid noborder\n"
      "set xrange [-0.6:{}]\nset yrange [0:*]\nset xtics 1\nset format y '%.0f'\n"
      "plot $layers using ($1-0.2):($2+$3) with boxes lc rgb '#5aae61' title 'SpMM', "
      "$layers using ($1-0.2):2 with boxes lc rgb '#1b7837' title 'SDDMM'{}, "
      "$layers using ($1+0.2):4 with boxes lc rgb '#2166ac' title 'active'\n",
      data, kVitcodStyle, gnuplot_quoted("Cycles of the attention engines by layer: " + mask),
      static_cast<double>(layers.size()) - 0.4, causes);
  return plot;
}

Plot sparsity_plot(const VitcodSubject& subject, const VitcodRuns& runs) {
  std::string data;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const double ours = cycles_of(runs.sweep_reordered[i]);
    const ScoreStationaryCycles other =
        score_stationary_cycles(subject.sweep[i].mask, subject.maps_dim, subject.machine);
    data += fmt::format(
        "{} {} {} {} {}\n", subject.sweep[i].percent, cycles_of(runs.sweep_dense) / ours,
        cycles_of(runs.sweep_unordered[i]) / ours, static_cast<double>(other.shared_macs()) / ours,
        static_cast<double>(other.own_predictor()) / ours);
  }
  Plot plot;
  plot.file = "vitcod_sparsity.png";
  plot.script = fmt::format(
      "$sweep << EOD\n{}EOD\n{}"
      "set title {} font ',15'\nset xlabel 'cells pruned (%)'\n"
      "set ylabel 'times faster (log)'\nset logscale y 2\nset xrange [57:98]\nset yrange "
      "[0.25:16.5]\n"
      "set ytics (0.25, 0.5, 1, 2, 4, 8, 16)\n"
      "plot 1 lc rgb '#888888' notitle, "
      "$sweep using 1:2 with linespoints pt 7 lw 2 lc rgb '#2166ac' title 'than a dense map', "
      "$sweep using 1:3 with linespoints pt 5 lw 2 lc rgb '#5aae61' title 'than without "
      "reordering', "
      "$sweep using 1:4 with linespoints pt 9 lw 2 lc rgb '#d95f0e' title 'than score-stationary', "
      "$sweep using 1:5 with linespoints pt 8 dt 2 lw 2 lc rgb '#d95f0e' "
      "title 'same, own predictor', "
      "'+' using (90):({}) every ::0::0 with points pt 3 ps 2 lc rgb '#000000' "
      "title 'published: than Sanger'\n",
      data, kVitcodStyle, gnuplot_quoted("Attention on the sparse engines: " + subject.maps_name),
      vitcod_paper().figure("sanger.90").value);
  return plot;
}

/// Decoder MACs over the memory's bytes per cycle: lines as predicted, points as found.
Plot break_even_plot(const VitcodRuns& runs) {
  constexpr const char* kColours[] = {"#2166ac", "#5aae61", "#d95f0e"};
  std::string data, curves;
  std::size_t models = 0;
  std::string_view last;
  for (const LinkBreakEven& point : runs.break_even) {
    if (point.array) continue;
    const AutoEncoder& heads = point.found.auto_encoder;
    if (point.model != last) {
      last = point.model;
      const std::string name =
          fmt::format("{}, {} -> {} heads", point.model, heads.heads, heads.latent_heads);
      const char* const colour = kColours[models % std::size(kColours)];
      data += fmt::format("{}$model{} << EOD\n", models == 0 ? "" : "EOD\n", models);
      curves += fmt::format(
          "{}{} * x with lines lw 2 lc rgb '{}' title {}, "
          "$model{} using 1:2 with points pt 7 ps 1.5 lc rgb '{}' title 'simulated'",
          models == 0 ? "" : ", ", heads.latent_heads, colour, gnuplot_quoted(name + ": predicted"),
          models, colour);
      ++models;
    }
    data += fmt::format("{} {}\n", point.found.bytes_per_cycle, point.found.decoder_macs);
  }
  Plot plot;
  plot.file = "vitcod_break_even.png";
  plot.script = fmt::format(
      "{}EOD\n{}set key inside left top\nset title 'Decoder MACs with which the auto-encoder of Q "
      "and K "
      "breaks "
      "even' font ',15'\n"
      "set xlabel 'bytes per cycle from memory'\nset ylabel 'MACs; above a line the auto-encoder "
      "pays'\nset xrange [0:170]\nset yrange [0:*]\nplot {}\n",
      data, kVitcodStyle, curves);
  return plot;
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

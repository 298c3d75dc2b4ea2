/// Sections about the engines alone.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "reproduce/vitcod/attention_figures.h"
#include "reproduce/vitcod/line_mapping.h"
#include "reproduce/vitcod/score_stationary.h"
#include "reproduce/vitcod/vitcod_published.h"
#include "reproduce/vitcod/vitcod_sections.h"

namespace systole::testbench {
namespace {

using Json = VitcodRuns::Json;

}  // namespace

ReproductionSection line_mapping_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const LineMappingCycles cycles =
      line_mapping_cycles(subject.mask, subject.mask_dim, subject.machine.attention);
  const auto engines = number(runs.reordered, "engine_cycles");
  ReproductionSection section{"Lines sharing columns of keys: SDDMM cycles before stalls", {}, {}};
  const struct {
    const char* name;
    double ours;
    const char* published;
  } rows[] = {
      {"kept cells x features / MACs", cycles.ideal, "sddmm.ideal"},
      {"threshold, perfect packing", static_cast<double>(cycles.packed), "sddmm.packed"},
      {"threshold, a column per line", static_cast<double>(cycles.per_line),
       "sddmm.column_per_line"},
      {"best columns, a column per line", static_cast<double>(cycles.best), "sddmm.best_columns"},
      {"threshold, column broadcast", static_cast<double>(cycles.broadcast), "sddmm.broadcast"},
      {"no reorder, a column per line", static_cast<double>(cycles.unordered), "sddmm.unordered"},
      {"no reorder, column broadcast", static_cast<double>(cycles.unordered_broadcast),
       "sddmm.unordered_broadcast"},
      {"automatic choice of columns", static_cast<double>(cycles.best), "sddmm.limit"},
      {"SDDMM and SpMM, simulated", engines, "attention.least"},
  };
  for (const auto& row : rows) {
    section.rows.push_back(subject.deit_tiny
                               ? compare(row.name, row.ours, vitcod_published(row.published))
                               : measured(row.name, row.ours, "cycles"));
  }
  section.notes.push_back(
      "Counted with the engines' cycle contract, head after head. 'threshold': global are columns "
      "with more kept cells than 50 of 197.");
  if (!subject.deit_tiny) {
    section.notes.push_back(
        "The figures to compare with are of the authors' mask of DeiT-Tiny: give it with --mask.");
  }
  return section;
}

ReproductionSection pruning_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section{"What pruning and reordering bring to attention", {}, {}};
  const auto row = [&](std::string name, double ours, const char* published) {
    section.rows.push_back(compare(std::move(name), ours, vitcod_published(published)));
  };
  double pruning = 0.0, reordering = 0.0;
  int points = 0;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const int percent = subject.sweep[i].percent;
    if (percent > 90) continue;
    ++points;
    pruning += speed_up(runs.sweep_dense, runs.sweep_reordered[i]);
    reordering += speed_up(runs.sweep_unordered[i], runs.sweep_reordered[i]);
    if (percent != 90) continue;
    row("maps at 90 %: pruning", speed_up(runs.sweep_dense, runs.sweep_reordered[i]), "pruning.90");
    row("maps at 90 %: reordering", speed_up(runs.sweep_unordered[i], runs.sweep_reordered[i]),
        "reordering.90");
  }
  if (points != 0) {
    row("maps, mean 60-90 %: pruning", pruning / points, "pruning.mean");
    row("maps, mean 60-90 %: reordering", reordering / points, "reordering.mean");
  }
  const auto own = [&](const char* name, double ours) {
    section.rows.push_back(measured(name, ours, "x"));
  };
  own("mask: pruning", speed_up(runs.dense, runs.reordered));
  own("mask: reordering", speed_up(runs.unordered, runs.reordered));
  own("mask: best columns to threshold", speed_up(runs.threshold, runs.reordered));
  section.notes.push_back(
      "Ours: cycles of whole attention from start to interrupt, simulated with memory, softmax and "
      "outputs. Pruning: a dense map through the same engines to the pruned and reordered one; "
      "reordering: pruned without global columns to pruned with them.");
  section.notes.push_back(
      "The paper's: DeiT of 197 tokens on its own cost model. On maps of few tokens and features, "
      "what does not shrink with the mask (rows of Q, K and V, outputs) weighs more.");
  return section;
}

ReproductionSection baseline_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section{
      "Times faster than others on as many MACs and the same memory", {}, {}};
  const auto row = [&](const std::string& name, double ours, const char* published = nullptr) {
    section.rows.push_back(published == nullptr ? measured(name, ours, "x")
                                                : compare(name, ours, vitcod_published(published)));
  };
  const auto counted = [&](const std::string& name, const ScoreStationaryCycles& other,
                           const Json& ours) {
    const double work = number(ours, "engine_cycles") - stalled_cycles(ours);
    row(name + ": same, both counted", static_cast<double>(other.shared_macs()) / work);
    row(name + ": same, own predictor",
        static_cast<double>(other.own_predictor()) / cycles_of(ours));
  };
  double sum = 0.0;
  int points = 0;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const VitcodSubject::Point& point = subject.sweep[i];
    const Json& ours = runs.sweep_reordered[i];
    const ScoreStationaryCycles other =
        score_stationary_cycles(point.mask, subject.maps_dim, subject.machine);
    const double shared = static_cast<double>(other.shared_macs()) / cycles_of(ours);
    const std::string name = fmt::format("maps, {} %", point.percent);
    row(name + ": dense", speed_up(runs.sweep_dense, ours));
    row(name + ": score-stationary", shared, point.percent == 90 ? "speedup.sanger.90" : nullptr);
    if (point.percent == 90) counted(name, other, ours);
    if (point.percent > 90) continue;
    sum += shared;
    ++points;
  }
  if (points != 0) row("maps, mean: score-stationary", sum / points, "speedup.sanger.mean");
  const ScoreStationaryCycles other =
      score_stationary_cycles(subject.mask, subject.mask_dim, subject.machine);
  row("mask: dense", speed_up(runs.dense, runs.reordered));
  row("mask: score-stationary",
      static_cast<double>(other.shared_macs()) / cycles_of(runs.reordered));
  counted("mask", other, runs.reordered);
  section.notes.push_back(
      "Dense: a map without pruned cells through the same engines, simulated. Score-stationary: "
      "Sanger's dataflow, its mask predicted at run time from 4-bit Q and K on the same MACs. It "
      "is "
      "counted without what would slow it (softmax, packing, skew, memory latency), while ours is "
      "simulated with all stalls.");
  section.notes.push_back(
      "Both counted: ours without its stalls as well. Own predictor: a second array of as many "
      "4-bit "
      "MACs predicts the next head meanwhile. Mean: over 60 to 90 %.");
  return section;
}

ReproductionSection energy_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section{"Energy of attention per inference", {}, {}};
  const double seconds = cycles_of(runs.reordered) / (subject.machine.core.clock_mhz * 1e6);
  const double joules = number(runs.reordered, "energy_joules");
  section.rows = {
      measured("mask", joules * 1e6, "uJ"),
      measured("dense map", number(runs.dense, "energy_joules") * 1e6, "uJ"),
      measured("dense to mask", number(runs.dense, "energy_joules") / joules, "x"),
      compare("average power", joules / seconds * 1e3, vitcod_published("power")),
      compare("times less than Sanger", std::nullopt, vitcod_published("energy.sanger")),
  };
  section.notes.push_back(
      "Ours: counted events times the machine's table of energies (45 nm), DRAM included. The "
      "paper's power is a 28 nm chip's; whether its energies include DRAM is not said.");
  return section;
}

ReproductionSection counter_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section{"The authors' public cycle counter, DeiT-Tiny at 95 %", {}, {}};
  std::optional<double> with, without;
  if (subject.deit_tiny) {
    with = number(*runs.auto_encoder, "engine_cycles");
    without = number(runs.reordered, "engine_cycles");
  }
  section.rows = {
      compare("4,096 MACs, auto-encoder", std::nullopt, vitcod_published("counter.4096")),
      compare("512 MACs, auto-encoder", with, vitcod_published("counter.512.auto_encoder")),
      compare("512 MACs, no auto-encoder", without, vitcod_published("counter.512.plain")),
  };
  section.notes.push_back(
      "Ours: cycles of the engines. The counter is a closed form: it counts head 0 of each layer "
      "for all heads, no softmax, no latency, no bank or port.");
  return section;
}

}  // namespace systole::testbench

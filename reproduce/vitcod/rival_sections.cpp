#include <fmt/format.h>

#include <cmath>
#include <string>

#include "reproduce/vitcod/rivals.h"
#include "reproduce/vitcod/vitcod.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

/// Pictures whose predicted masks are averaged.
constexpr std::size_t kPredictedPictures = 6;
constexpr int kHeadline = 90;

double cycles(const hw::dynamic::SangerCycles& run) { return static_cast<double>(run.total); }
double cycles(const hw::dynamic::SpattenCycles& run) { return static_cast<double>(run.total); }

hw::dynamic::AttentionProbabilities maps_attention(const VitcodSubject& subject) {
  const model::AttentionShape& shape = subject.maps_shape;
  return {shape.layers, shape.heads, shape.keys, subject.maps, {}};
}

/// What SpAtten ranks by where it runs the mask.
hw::dynamic::AttentionProbabilities mask_attention(const VitcodSubject& subject) {
  return subject.own_mask ? uniform_attention(subject.mask) : maps_attention(subject);
}

hw::dynamic::SpattenCycles spatten_cycles(const hw::dynamic::AttentionProbabilities& network,
                                          std::size_t dim, double sparsity,
                                          const Spatten& spatten) {
  return hw::dynamic::run_spatten(network, dim, values_alone(network, sparsity), spatten.array,
                                  spatten.stream);
}

/// Adds a row, or none for kNoFigure.
void add_row(ReproductionSection& section, const std::string& name, double ours,
             const std::string& unit) {
  if (!std::isnan(ours)) section.rows.push_back(measured(name, ours, unit));
}
/// The same beside a figure of the paper.
void add_compared(ReproductionSection& section, const std::string& name, double ours,
                  const char* figure) {
  if (std::isnan(ours)) return;
  section.rows.push_back(compare(name, ours, vitcod_paper().figure(figure)));
}

/// Times faster than both, of the mask that the command was given.
void add_mask(const VitcodSubject& subject, const Json& ours, ReproductionSection& section) {
  add_row(section, "mask: Sanger",
          cycles(sanger_cycles(subject.mask, subject.mask_dim, equal_sanger(subject.machine))) /
              cycles_of(ours),
          "x");
  const model::AttentionShape& shape = subject.mask.shape();
  if (shape.queries != shape.keys) return;
  add_row(section, "mask: SpAtten",
          cycles(spatten_cycles(mask_attention(subject), subject.mask_dim, subject.mask.sparsity(),
                                equal_spatten(subject.machine, subject.mask_dim))) /
              cycles_of(ours),
          "x");
}

/// What Sanger takes with masks that it predicts picture by picture; nothing if the maps are not
/// those of the model that it predicts them in.
void add_predicted(const VitcodSubject& subject, Metrics& metrics) {
  metrics["predicted"] = metrics["predicted.load"] = metrics["predicted.fixed"] = kNoFigure;
  const VitcodSubject::Point* const point = subject.at(kHeadline);
  if (!subject.embedded_maps || point == nullptr) return;
  const Sanger sanger = equal_sanger(subject.machine);
  const PredictedMasks predicted = predicted_masks(kHeadline / 100.0, kPredictedPictures);
  const auto count = static_cast<double>(predicted.masks.size());
  double total = 0.0, load = 0.0;
  for (const model::AttentionMask& mask : predicted.masks) {
    const hw::dynamic::SangerCycles one = sanger_cycles(mask, subject.maps_dim, sanger);
    total += cycles(one) / count;
    load += 100.0 * one.load() / count;
  }
  metrics["predicted"] = total;
  metrics["predicted.load"] = load;
  metrics["predicted.fixed"] = cycles(sanger_cycles(point->mask, subject.maps_dim, sanger));
}

}  // namespace

RivalCycles sweep_rivals(const VitcodSubject& subject, std::size_t point) {
  const model::AttentionMask& mask = subject.sweep[point].mask;
  RivalCycles found;
  found.sanger = sanger_cycles(mask, subject.maps_dim, equal_sanger(subject.machine));
  const bool square = subject.maps_shape.queries == subject.maps_shape.keys;
  if (square) {
    found.spatten = spatten_cycles(maps_attention(subject), subject.maps_dim, mask.sparsity(),
                                   equal_spatten(subject.machine, subject.maps_dim));
  }
  return found;
}

ReproductionSection baseline_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section = vitcod_paper().section("baseline");
  double sanger = 0.0, spatten = 0.0;
  int points = 0;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const int percent = subject.sweep[i].percent;
    const Json& ours = runs.sweep_reordered[i];
    const RivalCycles& rivals = runs.sweep_rivals[i];
    const double to_sanger = cycles(rivals.sanger) / cycles_of(ours);
    const double to_spatten =
        rivals.spatten ? cycles(*rivals.spatten) / cycles_of(ours) : kNoFigure;
    const std::string name = fmt::format("maps, {} %", percent);
    add_row(section, name + ": dense", speed_up(runs.sweep_dense, ours), "x");
    if (percent == kHeadline) {
      add_compared(section, name + ": Sanger", to_sanger, "sanger.90");
      add_compared(section, name + ": SpAtten", to_spatten, "spatten.90");
    } else {
      add_row(section, name + ": Sanger", to_sanger, "x");
      add_row(section, name + ": SpAtten", to_spatten, "x");
    }
    if (percent > kLastOfVitcodMean) continue;
    sanger += to_sanger;
    spatten += to_spatten;
    ++points;
  }
  if (points != 0) {
    add_compared(section, "maps, mean: Sanger", sanger / points, "sanger.mean");
    add_compared(section, "maps, mean: SpAtten", spatten / points, "spatten.mean");
  }
  add_row(section, "mask: dense", speed_up(runs.dense, runs.reordered), "x");
  add_mask(subject, runs.reordered, section);
  return section;
}

ReproductionSection rival_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const hw::Machine& machine = subject.machine;
  const double ours = cycles_of(runs.reordered);
  Sanger sanger = equal_sanger(machine);
  const auto run = [&] { return sanger_cycles(subject.mask, subject.mask_dim, sanger); };
  const hw::dynamic::SangerCycles shared = run();
  sanger.array.own_predictor = true;
  const hw::dynamic::SangerCycles own = run();
  sanger.array.common_phases = true;
  const hw::dynamic::SangerCycles released = run();
  Metrics metrics = {{"ours", ours},
                     {"sanger", cycles(shared)},
                     {"sanger.prediction", static_cast<double>(shared.prediction)},
                     {"sanger.array", static_cast<double>(shared.scores + shared.context)},
                     {"sanger.load", 100.0 * shared.load()},
                     {"sanger.own", cycles(own)},
                     {"sanger.released", cycles(released)}};
  for (const char* name :
       {"spatten", "spatten.scores", "spatten.top-k", "spatten.tokens", "spatten.pruned"}) {
    metrics[name] = kNoFigure;
  }
  const model::AttentionShape& shape = subject.mask.shape();
  if (shape.queries == shape.keys) {
    const hw::dynamic::AttentionProbabilities network = mask_attention(subject);
    const Spatten spatten = equal_spatten(machine, subject.mask_dim);
    const double sparsity = subject.mask.sparsity();
    const hw::dynamic::SpattenCycles values =
        spatten_cycles(network, subject.mask_dim, sparsity, spatten);
    const hw::dynamic::SpattenCycles tokens = hw::dynamic::run_spatten(
        network, subject.mask_dim, tokens_alone(network, sparsity), spatten.array, spatten.stream);
    metrics["spatten"] = cycles(values);
    metrics["spatten.scores"] = static_cast<double>(values.scores);
    metrics["spatten.top-k"] = static_cast<double>(values.top_k);
    metrics["spatten.tokens"] = cycles(tokens);
    metrics["spatten.pruned"] =
        100.0 * (1.0 - static_cast<double>(tokens.cells) / static_cast<double>(shape.cells()));
  }
  add_predicted(subject, metrics);
  return vitcod_paper().section("rivals", metrics);
}

ReproductionSection published_rival_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const Sanger sanger = published_sanger();
  const double ours = cycles_of(runs.reordered) / subject.machine.core.clock_mhz;
  const double theirs =
      cycles(sanger_cycles(subject.mask, subject.mask_dim, sanger)) / sanger.clock_mhz;
  Metrics metrics = {{"ours", ours},
                     {"sanger", theirs},
                     {"to sanger", theirs / ours},
                     {"spatten", kNoFigure},
                     {"to spatten", kNoFigure}};
  const model::AttentionShape& shape = subject.mask.shape();
  if (shape.queries == shape.keys) {
    const Spatten spatten = published_spatten();
    const double top_k = cycles(spatten_cycles(mask_attention(subject), subject.mask_dim,
                                               subject.mask.sparsity(), spatten)) /
                         spatten.clock_mhz;
    metrics["spatten"] = top_k;
    metrics["to spatten"] = top_k / ours;
  }
  return vitcod_paper().section("published-rivals", metrics);
}

}  // namespace systole::testbench

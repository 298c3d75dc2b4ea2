#include "testbench/sparsify/sparsity_curve.h"

#include "testbench/common/side_by_side.h"
#include "testbench/report/timing_document.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

ordered_json quality_json(const TaskQuality& quality) {
  const auto number = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  return {{"accuracy", number(quality.real)},
          {"integer_accuracy", number(quality.integer)},
          {"hidden_error", number(quality.error)}};
}

TaskQuality quality_of(const ordered_json& document) {
  const auto number = [&](const char* name) {
    const ordered_json& value = document.at(name);
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
  };
  return {number("accuracy"), number("integer_accuracy"), number("hidden_error")};
}

/// What is measured under a mask; null: of the network as it is.
ordered_json measured_under(const AttentionSubject& subject, const model::AttentionMask* mask,
                            const PruningRule& rule, std::uint64_t seed,
                            const hw::Machine& machine) {
  ordered_json document{{"quality", quality_json(subject.quality(mask, machine.datapath))},
                        {"shuffled", nullptr}};
  if (mask != nullptr) {
    const model::AttentionMask random = model::shuffled(*mask, rule.cls, seed);
    document["shuffled"] = quality_json(subject.quality(&random, machine.datapath, false));
  }
  const ordered_json run = timing_document(subject.graph(mask, machine), machine);
  document["cycles"] = run.at("cycles");
  document["attention_cycles"] = attention_cycles_of(run);
  document["energy_joules"] = run.at("energy_joules");
  return document;
}

void take_measured(const ordered_json& document, CurvePoint& point) {
  point.quality = quality_of(document.at("quality"));
  const ordered_json& shuffled = document.at("shuffled");
  if (!shuffled.is_null()) point.shuffled = quality_of(shuffled);
  point.cycles = document.at("cycles").get<double>();
  point.attention_cycles = document.at("attention_cycles").get<double>();
  point.joules = document.at("energy_joules").get<double>();
}

ordered_json point_json(const CurvePoint& point) {
  return {{"wanted", point.wanted ? ordered_json(*point.wanted) : ordered_json(nullptr)},
          {"sparsity", point.sparsity},
          {"thetas", point.thetas},
          {"quality", quality_json(point.quality)},
          {"shuffled", point.wanted ? quality_json(point.shuffled) : ordered_json(nullptr)},
          {"cycles", point.cycles},
          {"attention_cycles", point.attention_cycles},
          {"energy_joules", point.joules}};
}

}  // namespace

PrunedMask prune(const model::RankedMaps& maps, double sparsity, const PruningRule& rule) {
  std::vector<double> thetas =
      rule.per_head ? model::find_head_thetas(maps, sparsity, rule.cls)
                    : std::vector<double>{model::find_theta(maps, sparsity, rule.cls)};
  model::AttentionMask mask =
      rule.per_head ? maps.mask(thetas, rule.cls) : maps.mask(thetas.front(), rule.cls);
  return {std::move(thetas), std::move(mask)};
}

SparsityCurve sparsity_curve(const AttentionSubject& subject, const model::RankedMaps& maps,
                             const PruningRule& rule, const std::vector<double>& sparsities,
                             std::uint64_t seed, const hw::Machine& machine) {
  SparsityCurve curve{subject.name(),
                      machine.name,
                      subject.inputs(),
                      subject.shape(),
                      rule,
                      maps.margin(),
                      seed,
                      {}};
  curve.points.emplace_back();
  const std::optional<model::AttentionMask> own = subject.own_mask();
  if (own) curve.points.front().sparsity = own->sparsity();
  std::vector<model::AttentionMask> masks;
  for (const double sparsity : sparsities) {
    PrunedMask pruned = prune(maps, sparsity, rule);
    CurvePoint point;
    point.wanted = sparsity;
    point.sparsity = pruned.mask.sparsity();
    point.thetas = std::move(pruned.thetas);
    curve.points.push_back(std::move(point));
    masks.push_back(std::move(pruned.mask));
  }
  std::vector<Experiment> experiments;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const model::AttentionMask* const mask = i == 0 ? nullptr : &masks[i - 1];
    experiments.emplace_back(
        [&, mask] { return measured_under(subject, mask, rule, seed, machine); });
  }
  const std::vector<ordered_json> documents = run_side_by_side(experiments);
  for (std::size_t i = 0; i < documents.size(); ++i) take_measured(documents[i], curve.points[i]);
  return curve;
}

MaskQuality mask_quality(const AttentionSubject& subject, const model::AttentionMask* mask,
                         const PruningRule& rule, std::uint64_t seed, const hw::Machine& machine) {
  MaskQuality quality;
  quality.masked = subject.quality(mask, machine.datapath);
  if (mask == nullptr) return quality;
  const model::AttentionMask random = model::shuffled(*mask, rule.cls, seed);
  quality.dense = subject.quality(nullptr, machine.datapath);
  quality.shuffled = subject.quality(&random, machine.datapath);
  return quality;
}

nlohmann::ordered_json quality_json(const MaskQuality& quality) {
  return {{"dense", quality_json(quality.dense)},
          {"masked", quality_json(quality.masked)},
          {"shuffled", quality_json(quality.shuffled)}};
}

nlohmann::ordered_json curve_json(const SparsityCurve& curve) {
  ordered_json document{{"model", curve.model},
                        {"machine", curve.machine},
                        {"inputs", curve.inputs},
                        {"layers", curve.shape.layers},
                        {"heads", curve.shape.heads},
                        {"tokens", curve.shape.keys},
                        {"margin", curve.margin},
                        {"cls", curve.rule.cls},
                        {"per_head", curve.rule.per_head},
                        {"seed", curve.seed},
                        {"curve", ordered_json::array()}};
  for (const CurvePoint& point : curve.points) document["curve"].push_back(point_json(point));
  return document;
}

}  // namespace systole::testbench

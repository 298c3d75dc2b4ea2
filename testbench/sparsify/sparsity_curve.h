#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"
#include "model/mask/sparsify.h"
#include "testbench/report/plot.h"
#include "testbench/sparsify/attention_subject.h"

/// What pruning a network's attention costs it and saves it.
namespace systole::testbench {

/// How masks are made of average attention.
struct PruningRule {
  bool cls = false;       ///< row and column 0 are kept
  bool per_head = false;  ///< a theta for each head, so that all become equally sparse
};

/// The mask of the rule that comes closest to `sparsity`, and its thetas: one, or one for each
/// head.
struct PrunedMask {
  std::vector<double> thetas;
  model::AttentionMask mask;
};
/// Throws InputError for a sparsity that the rule cannot reach.
[[nodiscard]] PrunedMask prune(const model::RankedMaps& maps, double sparsity,
                               const PruningRule& rule);

/// One sparsity. Nothing is fine-tuned.
struct CurvePoint {
  std::optional<double> wanted;  ///< share of pruned cells; none: the network as it is
  double sparsity = 0.0;         ///< reached
  std::vector<double> thetas;
  TaskQuality quality;            ///< under the mask
  TaskQuality shuffled;           ///< under a random mask of the same size (model::shuffled())
  double cycles = 0.0;            ///< of an inference on the machine
  double attention_cycles = 0.0;  ///< of these, the attention engines'
  double joules = 0.0;            ///< of an inference
};

struct SparsityCurve {
  std::string model, machine;
  std::size_t inputs = 0;
  model::AttentionShape shape;
  PruningRule rule;
  std::size_t margin = 0;
  std::uint64_t seed = 0;  ///< of the random masks
  std::vector<CurvePoint> points;
};

/// The network as it is, and then under the mask of each sparsity, in this order. Each runs in a
/// separate process, side by side. Throws InputError for a sparsity that cannot be reached, or a
/// machine that cannot run the network.
[[nodiscard]] SparsityCurve sparsity_curve(const AttentionSubject& subject,
                                           const model::RankedMaps& maps, const PruningRule& rule,
                                           const std::vector<double>& sparsities,
                                           std::uint64_t seed, const hw::Machine& machine);

/// What one mask costs a network, beside a random one of the same size and the network without.
struct MaskQuality {
  TaskQuality dense, masked, shuffled;
};
/// Under `mask`; null: under the network's own masks, with nothing beside it.
[[nodiscard]] MaskQuality mask_quality(const AttentionSubject& subject,
                                       const model::AttentionMask* mask, const PruningRule& rule,
                                       std::uint64_t seed, const hw::Machine& machine);
/// A line for each quality that is known, or nothing.
[[nodiscard]] std::string quality_text(const MaskQuality& quality);
[[nodiscard]] nlohmann::ordered_json quality_json(const MaskQuality& quality);

/// At most kTextWidth columns.
[[nodiscard]] std::string curve_text(const SparsityCurve& curve);
/// A line for each point, after one of names.
[[nodiscard]] std::string curve_csv(const SparsityCurve& curve);
[[nodiscard]] nlohmann::ordered_json curve_json(const SparsityCurve& curve);
/// "sparsity_curve.png": quality, cycles and energy over the share of pruned cells.
[[nodiscard]] Plot curve_plot(const SparsityCurve& curve);

}  // namespace systole::testbench

#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "reproduce/published.h"
#include "reproduce/reproduction.h"
#include "testbench/report/fusion_run.h"

/// Operator fusion: nothing fused, after anchors alone, and everywhere, beside what follows from
/// the operators.
namespace systole::testbench {

/// What `systole reproduce fusion` can do apart: "chains" (elementwise operators), "layer" (a GPT-2
/// layer) and "models" (the embedded ones on the preset machines).
[[nodiscard]] const std::vector<std::string>& fusion_parts();

/// `parts` of fusion_parts(); none: all.
[[nodiscard]] Reproduction reproduce_fusion(const std::vector<std::string>& parts);

/// traces/published/fusion.toml.
[[nodiscard]] const PublishedPaper& fusion_paper();

/// Chains of elementwise operators on tensors with n^4 elements.
[[nodiscard]] ReproductionSection fusion_multiply_add_section();
[[nodiscard]] ReproductionSection fusion_chains_section();

/// A GPT-2 layer, operator by operator: its closed forms in the counters; the bytes of GPT-2 345M.
[[nodiscard]] ReproductionSection fusion_layer_section();
[[nodiscard]] ReproductionSection fusion_softmax_section();
[[nodiscard]] ReproductionSection fusion_bytes_section();

/// The embedded models on a preset machine.
struct FusedModels {
  std::string machine;
  std::vector<std::string> notes;  ///< where it is not the preset itself
  struct Model {
    std::string name;
    std::array<FusionRun, kFusionSteps> runs;  ///< in the order of kFusionStepNames
    /// Cycles off over those of step `step`.
    [[nodiscard]] double speed_up(std::size_t step) const;
  };
  std::vector<Model> models;
};
[[nodiscard]] std::vector<FusedModels> run_fused_models();
[[nodiscard]] ReproductionSection fusion_models_section(const FusedModels& models);
[[nodiscard]] ReproductionSection fusion_article_section(const std::vector<FusedModels>& machines);

/// Cycles and bytes of each model.
[[nodiscard]] Plot fusion_plot(const FusedModels& models);

}  // namespace systole::testbench

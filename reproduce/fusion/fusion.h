#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"
#include "reproduce/published.h"
#include "reproduce/reproduction.h"

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

/// How far fusion goes: mapper.fusion.
struct FusionStep {
  const char* name;
  hw::FusionLevel level;
};
inline constexpr std::size_t kFusionSteps = 3;
inline constexpr std::array<FusionStep, kFusionSteps> kFusionStepNames = {{
    {"off", hw::FusionLevel::kOff},
    {"post", hw::FusionLevel::kPost},
    {"all", hw::FusionLevel::kAll},
}};

/// The machine with that much fusion. With all of it, one whose loads have no stages gets as many
/// lanes there (preop.lanes) as after its accumulator.
[[nodiscard]] hw::Machine with_fusion(hw::Machine machine, hw::FusionLevel level);

/// What is simulated.
struct FusionTask {
  hw::Machine machine;
  std::function<model::Graph(const hw::Machine&)> graph;
  /// Bytes of the graph's input for each inference; none: one inference, timing alone.
  std::vector<std::vector<std::uint8_t>> inputs;
};

/// Of one inference, but for the outputs.
struct FusionRun {
  // Of the mapping (mapper/fusion_account.h).
  std::uint64_t passes = 0, trips = 0, accesses = 0;
  std::uint64_t stationary_bytes = 0, parameter_bytes = 0;
  // Counted in the simulation.
  std::uint64_t cycles = 0;
  std::uint64_t loaded_bytes = 0;   ///< by the load unit
  std::uint64_t operand_bytes = 0;  ///< tensor operands, by the store unit
  std::uint64_t written_bytes = 0;
  std::uint64_t vectors = 0;      ///< that went through the post-op chain
  std::uint64_t moved_bytes = 0;  ///< all between core and memory, commands included
  std::vector<std::uint8_t> outputs;

  /// What moved but weights, keys, values, parameters and commands.
  [[nodiscard]] std::uint64_t activation_bytes() const {
    return loaded_bytes + operand_bytes + written_bytes - stationary_bytes - parameter_bytes;
  }
};

/// Simulates them side by side, each in a separate process.
[[nodiscard]] std::vector<FusionRun> run_fusion(const std::vector<FusionTask>& tasks);

/// Bytes in which outputs differ from the first one's; other lengths differ in all bytes of the
/// longer.
[[nodiscard]] double differing_bytes(const FusionRun* runs, std::size_t count);

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

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "model/graph/graph.h"

/// One network with nothing fused, with stages after anchors, and with all that may fuse.
namespace systole::testbench {

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
  bool check = false;  ///< compare with the reference executor
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
  std::uint64_t mismatches = 0;   ///< bytes that differ from the reference executor's
  std::vector<std::uint8_t> outputs;

  /// What moved but weights, keys, values, parameters and commands.
  [[nodiscard]] std::uint64_t activation_bytes() const {
    return loaded_bytes + operand_bytes + written_bytes - stationary_bytes - parameter_bytes;
  }
};

/// What the mapping says of a run: passes, trips, accesses, bytes of weights and parameters. Cycles
/// are expected ones.
[[nodiscard]] FusionRun expected_fusion(const model::Graph& graph, const mapper::Mapping& mapping);

/// Simulates them side by side, each in a separate process.
[[nodiscard]] std::vector<FusionRun> run_fusion(const std::vector<FusionTask>& tasks);

/// Bytes in which outputs differ from the first one's; other lengths differ in all bytes of the
/// longer.
[[nodiscard]] double differing_bytes(const FusionRun* runs, std::size_t count);

}  // namespace systole::testbench

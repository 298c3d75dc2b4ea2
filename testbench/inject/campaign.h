#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "model/graph/graph.h"
#include "testbench/inject/injection.h"

namespace systole::testbench {

/// The run into which bits flip. All of it outlives the campaign.
struct FaultSubject {
  const model::Graph& graph;
  const mapper::Mapping& mapping;
  const hw::Machine& machine;
  const std::vector<std::vector<std::uint8_t>>& inputs;  ///< a run each
  /// Class of outputs; null: the network has none.
  std::function<std::int32_t(const std::vector<std::uint8_t>& outputs)> label;
};

struct CampaignRequest {
  std::vector<FaultTarget> targets;
  std::uint64_t injections = 0;  ///< of each target
  std::uint64_t seed = 1;
  std::uint32_t flips = 1;  ///< bits of an injection, 1 or 2
  std::size_t workers = 1;  ///< processes at once
  bool full = false;        ///< simulates every injection from the start, masked ones too
  /// Cycles after which a run hangs, as a multiple of those without errors.
  double watchdog = 2;
  std::optional<Injection> one;  ///< in the place of random ones
};

struct CampaignResult {
  std::uint64_t cycles = 0;                 ///< of the core, without errors
  std::vector<std::uint64_t> bits;          ///< of each target of the request
  std::vector<InjectionResult> injections;  ///< of the first target, then of the next
  std::uint64_t simulated = 0;              ///< of these
  double seconds = 0;                       ///< of host time
  double cpu_seconds = 0;                   ///< of all processes
};

/// Injections are the same for a seed, whatever the number of workers. The process must not have
/// begun a simulation. Throws InputError for machines that it does not take and for an injection
/// that is not in the run or the memory; std::runtime_error if a process ended early, with what
/// reproduces it.
[[nodiscard]] CampaignResult run_campaign(const FaultSubject& subject,
                                          const CampaignRequest& request);

}  // namespace systole::testbench

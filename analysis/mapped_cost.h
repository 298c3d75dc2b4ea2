#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/roofline.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "mapper/mapping.h"

/// What the commands of a mapped network take, by the cycle contracts that the simulated units
/// spend, if nothing had to wait for anything else; and beside it what the mapper expects.
namespace systole::analysis {

/// An operator of the program: a matmul with its chain, or a pass over a tensor.
struct OperatorEstimate {
  std::string name;
  std::uint64_t macs = 0;
  std::uint64_t commands = 0;
  std::uint64_t read_bytes = 0;  ///< operands, parameters and commands
  std::uint64_t written_bytes = 0;
  /// Of these, what the store unit moves: results and tensor operands of their chains.
  std::uint64_t store_unit_bytes = 0;
  Bound bound;  ///< cycles of the core: memory is the slowest of ports, bus and DRAM
  /// Cycles from the end of the operator before to its own, as the mapper's replay expects them.
  std::uint64_t expected_cycles = 0;
  /// What the mapper's cost model expects to be loaded for matmuls and chains, in bytes: operands,
  /// not what a pass takes into the accumulator.
  std::uint64_t expected_loads = 0;
  std::uint64_t loads = 0;  ///< the same by the commands
};

/// One estimate per operator, in order. Its bound: operators do not overlap, and within one the
/// array, the memory and the post-op unit overlap perfectly; it takes as long as the slowest of
/// them.
///
/// Array: the interval of each matmul, its first weights shifted in after the one before
/// (hw/array/array.h). Post-op: each result's chain (hw/postop/postop.h). Memory: a port issues a
/// request a cycle and has as many in flight as the machine allows, at the latency of an idle
/// memory; the bus moves a beat a cycle in each direction; the DRAM moves whole bursts. Banks, row
/// misses, refresh, turnarounds and contention are the simulation's to find.
[[nodiscard]] std::vector<OperatorEstimate> estimate(const mapper::Mapping& mapping,
                                                     const hw::Machine& machine);

/// "blocks.3.attn.head7.scores" -> "blocks.*.attn.head*.scores": layers and heads are alike.
[[nodiscard]] std::string general_name(const std::string& name);
/// A general name without the prefix "blocks.*." that all operators of a layer share.
[[nodiscard]] std::string short_name(const std::string& name);

/// Cycles that the unit of a command is expected to spend on it: loads at the rate of the load
/// port, matmuls and results by their contract. Attention is the mapper's plan, the host's work
/// what mapper/tile/host_cost.h says.
class CommandCycles {
 public:
  /// Both outlive this object.
  CommandCycles(const mapper::Mapping& mapping, const hw::Machine& machine);
  [[nodiscard]] double of(const hw::Command& command) const;

 private:
  /// Of the load stages, if the command is a load with such.
  [[nodiscard]] double stage_cycles(const hw::Command& command) const;

  const mapper::Mapping& mapping_;
  const hw::Machine& machine_;
};

}  // namespace systole::analysis

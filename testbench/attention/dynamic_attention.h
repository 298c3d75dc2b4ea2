#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "hw/dynamic/sanger_core.h"
#include "hw/dynamic/spatten_core.h"
#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"

/// Attention on machines that find their mask while they run (hw/dynamic).
namespace systole::testbench {

/// One of them with its clock and memory.
template <typename Array>
struct DynamicMachine {
  Array array;
  hw::dynamic::OperandStream stream;
  double clock_mhz = 0.0;
};
using Sanger = DynamicMachine<hw::dynamic::SangerArray>;
using Spatten = DynamicMachine<hw::dynamic::SpattenArray>;

/// The machine of that kind (dynamic.kind) as its keys describe it.
[[nodiscard]] Sanger sanger_of(const hw::Machine& machine);
[[nodiscard]] Spatten spatten_of(const hw::Machine& machine);

/// All heads of a mask, one after the other.
[[nodiscard]] hw::dynamic::SangerCycles sanger_cycles(const model::AttentionMask& mask,
                                                      std::size_t dim, const Sanger& sanger);

/// What its events cost by a machine's table of energies: a 4-bit product is a quarter of one of 8
/// bits, as its multiplier has a quarter of the partial products.
[[nodiscard]] double sanger_joules(const hw::dynamic::SangerCycles& run,
                                   const hw::Machine& machine);

/// Attention that a mask keeps, all of a row's cells alike: what a machine sees that ranks it, if
/// nothing but the mask is known.
[[nodiscard]] hw::dynamic::AttentionProbabilities uniform_attention(
    const model::AttentionMask& mask);

/// All tokens and heads; of each query's values the share that is not pruned.
[[nodiscard]] hw::dynamic::SpattenSchedule values_alone(
    const hw::dynamic::AttentionProbabilities& network, double sparsity);
/// As few tokens after the first layer as leave that share of the cells unpruned in all layers
/// together, no values besides. The first layer knows no importance and keeps all tokens; a
/// sparsity that it alone exceeds leaves a token to every other.
[[nodiscard]] hw::dynamic::SpattenSchedule tokens_alone(
    const hw::dynamic::AttentionProbabilities& network, double sparsity);

/// A finished run.
struct DynamicAttention {
  hw::Machine machine;
  std::string mask;  ///< where it came from
  model::AttentionShape shape;
  std::size_t dim = 0;
  std::size_t kept = 0;  ///< cells of the mask
  std::variant<hw::dynamic::SangerCycles, hw::dynamic::SpattenCycles> run;

  [[nodiscard]] std::uint64_t cycles() const;
};

/// Runs a mask: Sanger the cells that it keeps, SpAtten as many values of each query, or as many
/// tokens, as leave the mask's share of cells. Throws InputError for a machine without such a core,
/// and on SpAtten for maps that are not square and for more features than it has MACs.
[[nodiscard]] DynamicAttention run_dynamic_attention(const hw::Machine& machine,
                                                     const model::AttentionMask& mask,
                                                     const std::string& name, std::size_t dim);

/// For people: at most kTextWidth columns.
[[nodiscard]] std::string dynamic_attention_text(const DynamicAttention& attention);
/// The document of docs/attention.md.
[[nodiscard]] nlohmann::ordered_json to_json(const DynamicAttention& attention);

}  // namespace systole::testbench

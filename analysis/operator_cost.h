#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// What an operator of a network costs before any machine is chosen.
namespace systole::analysis {

/// The classes in which the survey tells operators apart (arXiv 2302.14017, Tab. 3).
enum class OperatorClass {
  kProjection,   ///< products with a d x d weight: query, key, value, output
  kAttention,    ///< products of two activations: scores and context
  kFeedForward,  ///< the two products of the MLP
  kOther,        ///< softmax, LayerNorm, GELU, residual additions
};
inline constexpr std::size_t kOperatorClasses = 4;

/// "projections", "attention", "feed-forward", "other".
[[nodiscard]] std::string_view name_of(OperatorClass kind);

/// One operator, all its repetitions (heads, layers, tokens) together. Numbers are exact below
/// 2^53.
struct OperatorCost {
  std::string name;
  OperatorClass kind = OperatorClass::kOther;
  double macs = 0;      ///< multiply-accumulates of the array; 0 for what it does not compute
  double flops = 0;     ///< multiplications and additions
  double bytes = 0;     ///< moved from and to memory
  double elements = 0;  ///< results of nonlinear operators

  /// FLOPs per byte.
  [[nodiscard]] double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};

/// Sums by class, and of all.
struct CostSummary {
  std::array<OperatorCost, kOperatorClasses> classes;
  OperatorCost total;

  [[nodiscard]] const OperatorCost& of(OperatorClass kind) const {
    return classes[static_cast<std::size_t>(kind)];
  }
};
[[nodiscard]] CostSummary summarise(const std::vector<OperatorCost>& operators);

}  // namespace systole::analysis

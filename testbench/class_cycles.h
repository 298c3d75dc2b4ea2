#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/postop.h"
#include "hw/program.h"
#include "tlm/observer.h"

namespace systole::testbench {

/// What the time of an encoder goes to, as the survey tells it apart (arXiv 2302.14017, Fig. 14).
enum class TimeClass : std::uint8_t {
  kMatmul,     ///< products with their biases and requantisations
  kGelu,       ///< chains with a GELU
  kSoftmax,    ///< chains with a softmax
  kLayerNorm,  ///< chains with a LayerNorm
  kResidual,   ///< chains that add a tensor, without a LayerNorm
};
inline constexpr std::size_t kTimeClasses = 5;
/// "matmul", "GELU", "softmax", "LayerNorm", "residual add".
[[nodiscard]] std::string_view name_of(TimeClass kind);

/// The class of what the store unit does with that chain.
[[nodiscard]] TimeClass class_of(const hw::Chain& chain);

/// Cycles by class; halves and thirds of a cycle occur.
struct ClassCycles {
  std::array<double, kTimeClasses> cycles{};

  [[nodiscard]] double of(TimeClass kind) const { return cycles[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] double total() const;
  /// 0 to 1; of an empty run 0.
  [[nodiscard]] double share(TimeClass kind) const;
};

/// Shares the cycles of an inference out, from the first dispatch to the last completion. A cycle
/// in which array and store unit are at work on different classes counts half for each; the array's
/// class is kMatmul. One in which neither is at work belongs to the operator that completes next:
/// to its matmul if it has one, else to its chain. `traces`: by position in the program, without
/// kEnd's.
[[nodiscard]] ClassCycles share_by_class(const hw::Program& program,
                                         const std::vector<tlm_model::CommandTrace>& traces);

}  // namespace systole::testbench

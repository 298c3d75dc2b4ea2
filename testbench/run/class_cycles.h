#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/host/host_function.h"
#include "hw/machine/machine.h"
#include "hw/postop/postop.h"
#include "hw/program/program.h"
#include "tlm/common/observer.h"

namespace systole::testbench {

/// What the time of an encoder goes to, as the survey tells it apart (arXiv 2302.14017, Fig. 14).
/// The host's time for its lines, and for being called, has no share there.
enum class TimeClass : std::uint8_t {
  kMatmul,     ///< products with their biases and requantisations
  kGelu,       ///< chains with a GELU, or the host's
  kSoftmax,    ///< chains with a softmax, or the host's
  kLayerNorm,  ///< chains with a LayerNorm, or the host's
  kResidual,   ///< chains that add a tensor, without a LayerNorm; the host's sums
  kConvert,    ///< of the host: integers to float32 and back
  kHostWait,   ///< of the host: lines on their way, interrupts, registers
};
inline constexpr std::size_t kTimeClasses = 7;
/// "matmul", "GELU", "softmax", "LayerNorm", "residual add", "de/quantisation", "host waits".
[[nodiscard]] std::string_view name_of(TimeClass kind);

/// The class of what the host computes.
[[nodiscard]] TimeClass class_of(hw::HostOp op);
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
/// in which array and store unit are working on different classes counts half for each; the array's
/// class is kMatmul. One in which neither is active belongs to the operator that completes next:
/// to its matmul if it has one, else to its chain. While the host is active nobody else is, and
/// its contract (hw/host/host_cycles.h) says what it does. `traces`: by position in the program,
/// without kEnd's; of `machine` count the host and the clocks.
[[nodiscard]] ClassCycles share_by_class(const hw::Program& program,
                                         const std::vector<tlm_model::CommandTrace>& traces,
                                         const hw::Machine& machine = {});

}  // namespace systole::testbench

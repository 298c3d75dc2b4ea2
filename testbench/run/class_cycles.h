#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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
/// its contract (hw/host/host_cycles.h) says what it does. Of the machine count the host and the
/// clocks. Program and machine have to outlive it.
class ClassSharing {
 public:
  ClassSharing(const hw::Program& program, const hw::Machine& machine);
  /// A command that has completed, in any order.
  void add(const tlm_model::CommandTrace& trace);
  /// When all commands but kEnd are there, once.
  [[nodiscard]] ClassCycles share();

 private:
  /// A unit is busy with a class, or done.
  struct Change {
    std::uint64_t cycle;
    hw::Unit unit;
    std::optional<TimeClass> now;
  };

  void add_host(const tlm_model::CommandTrace& trace);
  [[nodiscard]] const hw::Chain& chain_of(const tlm_model::CommandTrace& trace) const;
  void add(TimeClass kind, double cycles) {
    shared_.cycles[static_cast<std::size_t>(kind)] += cycles;
  }
  void advance(std::uint64_t to, std::optional<TimeClass> array, std::optional<TimeClass> store);
  /// Cycles in which neither unit is active.
  void add_waiting(std::uint64_t to);

  const hw::Program& program_;
  const hw::Machine& machine_;
  std::vector<std::uint64_t> ends_;  ///< by operator; at last none before its predecessor
  std::vector<bool> has_matmul_;     ///< by operator
  std::vector<TimeClass> classes_;   ///< by operator
  std::vector<Change> changes_;
  std::uint64_t at_ = std::numeric_limits<std::uint64_t>::max();
  ClassCycles shared_;
};

/// The same of all traces.
[[nodiscard]] ClassCycles share_by_class(const hw::Program& program,
                                         const std::vector<tlm_model::CommandTrace>& traces,
                                         const hw::Machine& machine = {});

}  // namespace systole::testbench

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "hw/axi/axi_pins.h"
#include "testbench/rtl/core/core_rtl.h"

namespace systole::testbench {

/// The Verilated core as an AXI4 subordinate with its registers and four AXI4 managers, for bridges
/// to a bus (tlm/axi). All have the same clock: while a program runs the core's edge is that of the
/// last of the five in a cycle, which is sound because no output of a port depends on an input of
/// the same cycle. Else the registers alone are clocked.
class CorePorts {
 public:
  /// In the order of the model's ports, which is that of their turns on the bus.
  enum Port : std::size_t { kProgram = 0, kLoads = 1, kStores = 2, kOperands = 3 };
  static constexpr std::size_t kPorts = 4;
  static constexpr unsigned kRegisterBytes = 8;  ///< a beat

  virtual ~CorePorts() = default;
  [[nodiscard]] virtual const CoreSize& size() const = 0;
  [[nodiscard]] virtual hw::AxiManager& port(Port port) = 0;
  [[nodiscard]] virtual hw::AxiResponder& registers() = 0;
  /// What it tells the system around it.
  struct Callbacks {
    /// A program starts: the bridges have to be clocked from the next cycle on. Returns the number
    /// of that cycle in the system.
    std::function<std::uint64_t()> on_start;
    /// The level of the interrupt has changed with an edge.
    std::function<void(bool)> on_interrupt;
    /// Nothing more happens in a program that is not over: a difference, or the core hangs.
    std::function<void()> on_stop;
  };
  /// Resets the core. Before its first cycle in a system.
  virtual void reset(Callbacks callbacks) = 0;
  /// The program that its registers will start from now on. `times`: when its commands are
  /// dispatched, begin and complete; the core's clock stops kCyclesBehind after the
  /// first that does not. Null: anything may happen. It must outlive the run.
  virtual void expect(const CoreCase& test, const std::vector<CoreCommandTimes>* times) = 0;
  static constexpr std::uint64_t kCyclesBehind = 500;
  [[nodiscard]] virtual const std::optional<CommandDifference>& difference() const = 0;
  /// Of that program. Cycles count from the start on. Throws std::invalid_argument if the core has
  /// stopped at a command, std::runtime_error if it hangs, std::logic_error if it has not finished.
  [[nodiscard]] virtual const CoreRun& run() const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired, or a response error
  /// The waveform ended early because the file had reached its limit.
  [[nodiscard]] virtual bool wave_is_cut_short() const = 0;
};

/// Of what `options.own` names "core", or of `size`, one of kCoreSizes.
[[nodiscard]] std::unique_ptr<CorePorts> make_core_ports(const RtlOptions& options = {},
                                                         const CoreSize& size = kTinyCore);

}  // namespace systole::testbench

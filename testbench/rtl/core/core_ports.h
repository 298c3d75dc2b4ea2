#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hw/axi/axi_pins.h"
#include "testbench/rtl/core/core_rtl.h"

namespace systole::testbench {

/// The Verilated core as four AXI4 managers, for bridges to a bus (tlm/axi/axi_bridge.h). All of
/// them have the same clock: the core's edge is that of the last of the four in a cycle, which is
/// sound because no output of a port depends on an input of the same cycle.
class CorePorts {
 public:
  /// In the order of the model's ports, which is that of their turns on the bus.
  enum Port : std::size_t { kProgram = 0, kLoads = 1, kStores = 2, kOperands = 3 };
  static constexpr std::size_t kPorts = 4;

  virtual ~CorePorts() = default;
  [[nodiscard]] virtual const CoreSize& size() const = 0;
  [[nodiscard]] virtual hw::AxiManager& port(Port port) = 0;
  /// Resets the core; the program begins with the next edge, in cycle `at` of the system. The
  /// bridges have to be started then.
  virtual void start(const CoreCase& test, std::uint64_t at) = 0;
  /// Cycles count from the start on. Throws std::invalid_argument if the core has stopped at a
  /// command, std::runtime_error if it hangs, std::logic_error if it has not finished.
  [[nodiscard]] virtual const CoreRun& run() const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired, or a response error
  /// The waveform ended early because the file had reached its limit.
  [[nodiscard]] virtual bool wave_is_cut_short() const = 0;
};

/// Of what `options.own` names "core", or of `size`, one of kCoreSizes.
[[nodiscard]] std::unique_ptr<CorePorts> make_core_ports(const RtlOptions& options = {},
                                                         const CoreSize& size = kTinyCore);

}  // namespace systole::testbench

#pragma once

#include <cstdint>
#include <memory>

#include "hw/axi/axi_pins.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/core/systole_core_registers.sv behind its AXI4 port.
class CoreRegistersRtl : public hw::AxiResponder {
 public:
  static constexpr unsigned kBytes = 8;  ///< a beat

  /// What the core says in a cycle.
  struct Core {
    bool finish = false, fault = false, stuck = false, call = false;
    std::uint64_t call_address = 0;
  };
  /// What the registers say to the core and to the host.
  struct Outputs {
    bool interrupt, start, running, called, host_done;
    std::uint64_t program;
  };

  /// Of the cycle that is settled next.
  virtual void set(const Core& core) = 0;
  /// Of the cycle that has settled.
  [[nodiscard]] virtual Outputs outputs() const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

[[nodiscard]] std::unique_ptr<CoreRegistersRtl> make_core_registers(const RtlOptions& options = {});

}  // namespace systole::testbench

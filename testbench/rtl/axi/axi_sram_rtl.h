#pragma once

#include <cstdint>
#include <memory>

#include "hw/axi/axi_pins.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/axi/systole_axi_sram.sv: a memory and four registers, a word of the port each.
class AxiSramRtl : public hw::AxiResponder {
 public:
  static constexpr std::uint64_t kWords = 256;
  static constexpr std::uint32_t kIdentity = 0x53797374;
  static constexpr std::uint64_t kRegisters = 4;

  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// `bytes`: width of the port, 4 or 16; throws InputError for others.
[[nodiscard]] std::unique_ptr<AxiSramRtl> make_axi_sram(unsigned bytes,
                                                        const RtlOptions& options = {});

}  // namespace systole::testbench

#pragma once

#include <cstdint>
#include <memory>

#include "hw/axi/axi_pins.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// rtl/dma/systole_axi_dma.sv: RTL with an AXI4 manager port that copies ranges of bytes.
class AxiDmaRtl : public hw::AxiManager {
 public:
  static constexpr std::uint64_t kAddresses = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kMaxBytes = 0xffff'ffff;

  /// Begins a copy with the next cycle; the DMA must not be active. `expected`: the bytes at the
  /// source for the waveform, until the end of the copy, or null. Throws std::invalid_argument for
  /// a range that the DMA cannot name.
  virtual void copy(std::uint64_t source, std::uint64_t target, std::uint64_t bytes,
                    const std::uint8_t* expected = nullptr) = 0;
  [[nodiscard]] virtual bool error() const = 0;   ///< a response of this copy was no OKAY
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// `bytes`: width of the data. Throws InputError for widths that are not built.
[[nodiscard]] std::unique_ptr<AxiDmaRtl> make_axi_dma(unsigned bytes,
                                                      const RtlOptions& options = {});

}  // namespace systole::testbench

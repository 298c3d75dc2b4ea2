#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// MACs of the lines that Makefile.verilator builds.
inline constexpr std::uint32_t kLineMacs = 8;

/// Throws InputError for a machine without lines.
inline void require_lines(const std::string& block, const hw::Machine::Attention& attention) {
  if (attention.lines == 0) {
    throw hw::InputError(block + " RTL: attention.lines is 0, expected attention engines");
  }
}

/// A line behind its interface, in the flavour that the options ask for. Throws InputError for a
/// number of MACs that no RTL is built for.
template <typename Interface, typename Fast, typename Checked>
std::unique_ptr<Interface> make_mac_line(const char* block, std::uint32_t macs,
                                         const RtlOptions& options) {
  if (macs != kLineMacs) {
    throw hw::InputError(std::string(block) + " RTL: " + std::to_string(macs) + " MACs, expected " +
                         std::to_string(kLineMacs));
  }
  if (options.use_checked()) return std::make_unique<Checked>(options);
  return std::make_unique<Fast>(options);
}

}  // namespace systole::testbench

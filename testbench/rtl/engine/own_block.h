#pragma once

#include <verilated_config.h>

#include <cstdint>
#include <memory>
#include <string>

#include "testbench/rtl/drive/rtl_options.h"
#include "testbench/rtl/postop/chain_rtl.h"

namespace systole::testbench {

/// A block that is a user's own RTL, in a shared library that `systole rtl add` builds. The library
/// has what was Verilated, and the driver of the block for it; all else is the program's.
struct OwnBlock {
  const char* program;    ///< version and commit of the program whose headers it was built with
  const char* verilator;  ///< VERILATOR_VERSION
  const char* block;
  std::uint32_t lanes;  ///< 0: the block has none
  const char* folder;   ///< of its manifest
  ChainRtl* (*make)(std::uint32_t lanes, const RtlOptions& options);
};

/// Name of the OwnBlock in the library.
inline constexpr const char* kOwnBlockSymbol = "systole_own_block";

/// The block, ready to run. An error of its protocol is an InputError that names the folder. Throws
/// InputError if it has another number of lanes.
[[nodiscard]] std::unique_ptr<ChainRtl> make_own_block(const OwnBlock& own, std::uint32_t lanes,
                                                       const RtlOptions& options);

}  // namespace systole::testbench

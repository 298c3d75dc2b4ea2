#pragma once

#include <string>
#include <vector>

#include "testbench/own/manifest.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

struct RtlPort {
  std::string name;
  bool is_output = false;
  unsigned bits = 0;
};

/// The ports of Systole's RTL of a block in these sizes, in the order of its OwnDriver, which a
/// user's has to have, under these names or others. Throws InputError if Verilator is missing.
[[nodiscard]] std::vector<RtlPort> block_ports(const std::string& block,
                                               const std::vector<std::uint32_t>& sizes);

/// Verilates the RTL in a folder and builds the library of it. `program`: version and commit of
/// this program. What Verilator and the compiler print goes to standard error. Throws InputError
/// with one line if the manifest or the ports are wrong, if a tool is missing, or if it finds
/// errors. Not `checked`: without assertions and waveforms, which is faster to build and to run.
OwnManifest add_own_rtl(const std::string& folder, const std::string& program, bool checked);

/// Loads the library of a folder for `block`, and keeps it until the program ends. Throws
/// InputError if it is of another block, has not been built, or was built of other files or for
/// another program.
[[nodiscard]] const OwnBlock& load_own_rtl(const std::string& folder, const std::string& block,
                                           const std::string& program);

}  // namespace systole::testbench

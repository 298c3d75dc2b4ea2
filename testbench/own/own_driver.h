#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace systole::testbench {

/// A size of a block: a key of the manifest, and a parameter of Systole's module.
struct OwnSizeKey {
  const char* name;
  const char* parameter;
  std::uint32_t least, most;
  std::uint32_t usual;  ///< of `systole rtl ports` unless it is given
};

/// How a block is driven.
struct OwnDriver {
  const char* block;    ///< as manifests name it; Systole's module is systole_BLOCK
  const char* machine;  ///< block of the machine, as --rtl names it
  std::vector<OwnSizeKey> sizes;
  const char* header;
  const char* interface;            ///< that the driver implements
  const char* unit;                 ///< its class for a `Model`; {0}, {1}, ... are the sizes
  const char* arguments;            ///< of its constructor, which may use `arguments` and `options`
  const char* reference = nullptr;  ///< option of Verilator for Systole's module, or null
};

/// All blocks that can be a user's own: those with a twin.
[[nodiscard]] const std::vector<OwnDriver>& own_drivers();

/// Null if there is none.
[[nodiscard]] const OwnDriver* find_own_driver(const std::string& block);

/// Blocks as manifests name them.
[[nodiscard]] std::vector<std::string> own_blocks();

/// Blocks of the machine, as --rtl names them.
[[nodiscard]] std::vector<std::string> own_blocks_of_machines();

}  // namespace systole::testbench

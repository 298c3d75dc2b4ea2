#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Users' own RTL in place of a block: a folder with SystemVerilog and a manifest
/// (docs/own-rtl.md).
namespace systole::testbench {

inline constexpr const char* kManifest = "rtl.toml";

struct OwnManifest {
  std::string folder;
  std::string block;                 ///< that it replaces
  std::string top;                   ///< module
  std::vector<std::uint32_t> sizes;  ///< in the order of its OwnDriver
  std::vector<std::string> sources;  ///< paths, in the order in which they are compiled
  std::vector<std::string> include;  ///< folders
  std::map<std::string, std::int64_t> parameters;
  std::map<std::string, std::string> ports;  ///< our name: that of the top
  std::string adapter, adapter_class;        ///< path of a header, "": none

  /// What the library is built from.
  [[nodiscard]] std::vector<std::string> files() const;
  [[nodiscard]] std::string path() const { return folder + "/" + kManifest; }
  [[nodiscard]] std::string build_folder() const { return folder + "/systole_build"; }
  [[nodiscard]] std::string library() const { return build_folder() + "/" + block + ".so"; }
};

/// The folder with the headers of the rooms, or with the RTL, which has `file`: part of the
/// installation or of the source tree. Throws InputError if there is none.
[[nodiscard]] std::string installed_folder(const std::string& file);
/// Systole's own RTL.
[[nodiscard]] std::string systole_rtl_folder();

/// Throws InputError with one line: file, place, what was found, what was expected.
[[nodiscard]] OwnManifest read_manifest(const std::string& folder);

}  // namespace systole::testbench

#pragma once

#include <string>
#include <vector>

#include "base/file_identity.h"

namespace systole::testbench {

/// The files of a command line, by the options that name them: none that is read may be written,
/// and none may be written twice, whatever it is called. Empty paths are no files, and
/// terminals and /dev/null keep nothing that could be lost.
class CommandFiles {
 public:
  void reads(const std::string& option, const std::string& path);
  /// Or the pictures in the folder `path`.
  void reads_pictures(const std::string& option, const std::string& path);
  /// Of a preset, or of that path.
  void reads_machine(const std::string& option, const std::string& name_or_path);
  /// A checkpoint or an integer model, with what is read beside it: `find` (model/model_files.h)
  /// knows the path of a name, and throws InputError for one of no file.
  void reads_model(const std::string& option, const std::string& name_or_path,
                   std::string (*find)(const std::string&));

  void writes(const std::string& option, const std::string& path);
  /// Files "*.png" in the folder `path`, made if it does not exist.
  void writes_plots(const std::string& option, const std::string& path);

  /// Throws InputError that names the file and both options.
  void require_distinct() const;

 private:
  struct Use {
    std::string option, path;
    bool is_output;
    hw::FileIdentity file;
  };
  struct Folder {
    std::string option, path;
    hw::FileIdentity identity;
  };
  void add(const std::string& option, const std::string& path, bool is_output);
  void require_outside(const Use& use, const Folder& folder) const;

  std::vector<Use> uses_;
  std::vector<Folder> plots_;
};

}  // namespace systole::testbench

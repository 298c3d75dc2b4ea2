#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_identity.h"

/// The subcommands of the program. Each `add_` function declares its options; when its subcommand
/// is given, `action` is set to what it does, which returns the exit code.
namespace systole::testbench {

inline constexpr int kExitOk = 0;
inline constexpr int kExitCheckFailed = 1;  ///< the run worked, a check did not hold
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitInternal = 3;  ///< an error of the program itself

using Action = std::function<int()>;

void add_run_command(CLI::App& app, Action& action);
void add_map_command(CLI::App& app, Action& action);
void add_attention_command(CLI::App& app, Action& action);
void add_compare_command(CLI::App& app, Action& action);
void add_layer_command(CLI::App& app, Action& action);
void add_analyse_command(CLI::App& app, Action& action);
void add_convert_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
void add_explain_command(CLI::App& app, Action& action);
void add_generate_command(CLI::App& app, Action& action);
void add_inject_command(CLI::App& app, Action& action);
void add_machine_command(CLI::App& app, Action& action);
void add_model_command(CLI::App& app, Action& action);
void add_play_command(CLI::App& app, Action& action);
void add_quantise_command(CLI::App& app, Action& action);
void add_reproduce_command(CLI::App& app, Action& action);
void add_matmul_command(CLI::App& app, Action& action);
void add_rtl_command(CLI::App& app, Action& action);
void add_sparsify_command(CLI::App& app, Action& action);
void add_sweep_command(CLI::App& app, Action& action);
void add_vectors_command(CLI::App& app, Action& action);
void add_worker_command(CLI::App& app, Action& action);

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

/// Lets the subcommand run `body(options)` on the options that its own options fill. It writes no
/// files.
template <typename Options>
void set_action(CLI::App& command, Action& action, std::shared_ptr<Options> options,
                int (*body)(const Options&)) {
  command.callback([&action, options = std::move(options), body] {
    action = [options, body] { return body(*options); };
  });
}

/// The same for a subcommand that writes files: `list(options, files)` says which, and which it
/// reads. An output that is also an input, or another output, is refused before `body` begins.
template <typename Options>
void set_action(CLI::App& command, Action& action, std::shared_ptr<Options> options,
                void (*list)(const Options&, CommandFiles&), int (*body)(const Options&)) {
  command.callback([&action, options = std::move(options), list, body] {
    action = [options, list, body] {
      CommandFiles files;
      list(*options, files);
      files.require_distinct();
      return body(*options);
    };
  });
}

/// The lines of examples below a subcommand's options.
void add_examples(CLI::App& command, const std::vector<std::string>& lines);

}  // namespace systole::testbench

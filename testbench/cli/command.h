#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "testbench/cli/command_files.h"

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
void add_analyse_command(CLI::App& app, Action& action);
void add_generate_command(CLI::App& app, Action& action);
void add_machine_command(CLI::App& app, Action& action);
void add_model_command(CLI::App& app, Action& action);
void add_quantise_command(CLI::App& app, Action& action);
void add_reproduce_command(CLI::App& app, Action& action);
void add_matmul_command(CLI::App& app, Action& action);
void add_sparsify_command(CLI::App& app, Action& action);
void add_vectors_command(CLI::App& app, Action& action);

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

#include "testbench/cli/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <systemc>

#include "base/error.h"
#include "base/printable.h"
#include "base/signal_cleanup.h"
#include "hw/kernel/instruction_sets.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/version.h"

namespace systole::testbench {
namespace {

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

constexpr std::size_t kOptionColumn = 32;

/// Text of several lines, as a machine file with several errors has, becomes as many messages.
int fail(int code, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) fmt::print(stderr, "systole: {}\n", hw::printable(line));
  }
  return code;
}

int fail_internal(const std::string& text) {
  return fail(kExitInternal, "internal error, please report it: " + text);
}

/// An exception that left a simulated process reaches us in a report of this type.
bool is_foreign(const sc_core::sc_report& report) {
  return std::strcmp(report.get_msg_type(), sc_core::SC_ID_SIMULATION_UNCAUGHT_EXCEPTION_) == 0;
}

/// Standard output belongs to the results: the kernel's notes are dropped and its warnings go to
/// standard error. Errors are thrown.
void on_report(const sc_core::sc_report& report, const sc_core::sc_actions&) {
  if (report.get_severity() == sc_core::SC_WARNING) {
    fail(kExitOk, fmt::format("warning: {}: {}", report.get_msg_type(), report.get_msg()));
  } else if (report.get_severity() >= sc_core::SC_ERROR) {
    throw sc_core::sc_report(report);
  }
}

struct Command {
  std::string_view name;
  void (*add)(CLI::App& app, Action& action);
};

/// In the order of the help.
constexpr Command kCommands[] = {
    {"run", add_run_command},
    {"matmul", add_matmul_command},
    {"generate", add_generate_command},
    {"map", add_map_command},
    {"attention", add_attention_command},
    {"layer", add_layer_command},
    {"analyse", add_analyse_command},
    {"explain", add_explain_command},
    {"inject", add_inject_command},
    {"compare", add_compare_command},
    {"play", add_play_command},
    {"sweep", add_sweep_command},
    {"machine", add_machine_command},
    {"model", add_model_command},
    {"convert", add_convert_command},
    {"quantise", add_quantise_command},
    {"sparsify", add_sparsify_command},
    {"reproduce", add_reproduce_command},
    {"vectors", add_vectors_command},
    {"rtl", add_rtl_command},
    {"doctor", add_doctor_command},
    {"worker", add_worker_command},
};

/// The command that the first argument names, null if it names none.
const Command* find_command(int argc, const char* const* argv) {
  if (argc < 2) return nullptr;
  const auto is_named = [&](const Command& command) { return command.name == argv[1]; };
  const Command* const found = std::find_if(std::begin(kCommands), std::end(kCommands), is_named);
  return found == std::end(kCommands) ? nullptr : found;
}

/// All commands, or the wanted one alone: the options of all take 4 ms, as long as a short program
/// runs.
void add_commands(CLI::App& app, Action& action, const Command* wanted) {
  app.get_formatter()->column_width(kOptionColumn);
  const std::string commit = *kCommit == '\0' ? "" : fmt::format(" ({})", kCommit);
  app.set_version_flag("--version", fmt::format("systole {}{}", kVersion, commit),
                       "print the version and the commit");
  app.set_help_flag("-h,--help", "print this help");
  // Not one at least: CLI11 would say that one is missing where it does not know the one given.
  app.require_subcommand(0, 1);
  for (const Command& command : kCommands) {
    if (wanted == nullptr || wanted == &command) command.add(app, action);
  }
  app.footer("'systole COMMAND --help' explains a command and gives examples.");
}

/// The exit code, if parsing ended the program; a negative number if not.
int parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return -1;
  } catch (const CLI::CallForHelp&) {
    print_text(app.help());  // of the chosen subcommand, if there is one
    return kExitOk;
  } catch (const CLI::CallForVersion&) {
    print_text(app.version() + "\n");
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "" : chosen.front()->get_name() + " ";
    return fail(kExitBadInput,
                fmt::format("{} (see 'systole {}--help')", hw::printable(error.what()), command));
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  sc_core::sc_report_handler::set_handler(&on_report);
  hw::install_signal_cleanup();
  set_command_line(argc, argv);
  try {
    hw::limit_instruction_sets();
    CLI::App app("Cycle-level models of Transformer inference accelerators.", "systole");
    Action action;
    add_commands(app, action, find_command(argc, argv));
    const int parsed = parse(app, argc, argv);
    if (parsed >= 0) return parsed;
    if (!action) throw hw::InputError("no command, expected one (see 'systole --help')");
    return action();
  } catch (const hw::InputError& error) {
    return fail(kExitBadInput, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kExitBadInput, "the host has not enough memory for this");
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(kExitBadInput, error.what());
  } catch (const sc_core::sc_report& report) {
    if (is_foreign(report)) return fail_internal(report.get_msg());
    return fail(kExitBadInput, std::string(report.get_msg_type()) + ": " + report.get_msg());
  } catch (const std::exception& error) {
    return fail_internal(error.what());
  }
}

}  // namespace systole::testbench

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
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

void add_commands(CLI::App& app, Action& action) {
  app.get_formatter()->column_width(kOptionColumn);
  const std::string commit = *kCommit == '\0' ? "" : fmt::format(" ({})", kCommit);
  app.set_version_flag("--version", fmt::format("systole {}{}", kVersion, commit),
                       "print the version and the commit");
  app.set_help_flag("-h,--help", "print this help");
  // Not one at least: CLI11 would say that one is missing where it does not know the one given.
  app.require_subcommand(0, 1);
  add_run_command(app, action);
  add_matmul_command(app, action);
  add_generate_command(app, action);
  add_map_command(app, action);
  add_attention_command(app, action);
  add_layer_command(app, action);
  add_analyse_command(app, action);
  add_explain_command(app, action);
  add_inject_command(app, action);
  add_compare_command(app, action);
  add_play_command(app, action);
  add_sweep_command(app, action);
  add_machine_command(app, action);
  add_model_command(app, action);
  add_convert_command(app, action);
  add_quantise_command(app, action);
  add_sparsify_command(app, action);
  add_reproduce_command(app, action);
  add_vectors_command(app, action);
  add_rtl_command(app, action);
  add_doctor_command(app, action);
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

/// Parses the command line, runs the subcommand, and turns every error into lines `systole: ...` on
/// standard error. Returns the exit code (testbench/cli/common/command.h).
int run_program(int argc, const char* const* argv) {
  sc_core::sc_report_handler::set_handler(&on_report);
  hw::install_signal_cleanup();
  set_command_line(argc, argv);
  try {
    hw::limit_instruction_sets();
    CLI::App app("Cycle-level models of Transformer inference accelerators.", "systole");
    Action action;
    add_commands(app, action);
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

}  // namespace
}  // namespace systole::testbench

int sc_main(int argc, char* argv[]) { return systole::testbench::run_program(argc, argv); }

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/common/tool.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

struct SweepOptions {
  std::string space, store, dask, csv;
  std::vector<std::string> plots;
  std::optional<std::uint64_t> workers;
};

/// What the Python package runs. An interpreter without it, or without what it needs, says so in
/// one line.
constexpr const char* kBootstrap =
    "import sys\n"
    "try:\n"
    "    from systole.exploration.command import main\n"
    "except ImportError:\n"
    "    sys.exit(print(f\"systole: sweep: {sys.executable} has no package systole, expected: pip "
    "\"\n"
    "                   \"install . in Systole's checkout\", file=sys.stderr) or 2)\n"
    "sys.exit(main(sys.argv[1]))\n";

std::string store_of(const SweepOptions& options) {
  if (!options.store.empty()) return options.store;
  return fs::path(options.space).replace_extension(".sqlite").string();
}

void list_files(const SweepOptions& options, CommandFiles& files) {
  files.reads("space", options.space);
  files.writes("--store", store_of(options));
  files.writes("--csv", options.csv);
  for (const std::string& plot : options.plots) files.writes("--plot", plot);
}

/// Becomes the Python interpreter.
int run(const SweepOptions& options) {
  if (options.workers && !options.dask.empty()) {
    throw hw::InputError("--workers and --dask: expected one of them");
  }
  nlohmann::json request{{"space", options.space}, {"store", store_of(options)}};
  if (options.workers) request["workers"] = *options.workers;
  if (!options.dask.empty()) request["dask"] = options.dask;
  if (!options.csv.empty()) request["csv"] = options.csv;
  if (!options.plots.empty()) request["plot"] = options.plots;
  const std::string python = python_interpreter();
  // The package runs this very program.
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) ::setenv("SYSTOLE_PROGRAM", self.c_str(), 1);
  std::string bootstrap = kBootstrap, flag = "-c", name = python;
  std::string text = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::array<char*, 5> arguments{name.data(), flag.data(), bootstrap.data(), text.data(),
                                       nullptr};
  ::execvp(python.c_str(), arguments.data());
  throw hw::InputError(
      fmt::format("sweep: {}: {}, expected Python 3.11 or newer", python, std::strerror(errno)));
}

}  // namespace

void add_sweep_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App& command = *app.add_subcommand("sweep", "simulate many machines, find the best");
  command.add_option("space", options->space, "axes, constraints, search")
      ->type_name("FILE.toml")
      ->required();
  command.add_option("-o,--store", options->store, "results; default: beside the space file")
      ->type_name("FILE.sqlite");
  require_positive(
      *command.add_option("-j,--workers", options->workers, "at once here; default: all cores")
           ->type_name("N"));
  command.add_option("--dask", options->dask, "tcp://HOST:PORT, local:N or slurm:N instead")
      ->type_name("CLUSTER");
  command.add_option("--csv", options->csv, "write a line per point")->type_name("FILE.csv");
  command.add_option("--plot", options->plots, "draw front and coordinates: .html, .png")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_examples(command, {"systole sweep space.toml", "systole sweep space.toml -j 2 --csv all.csv",
                         "systole sweep space.toml --plot front.html --plot front.png",
                         "systole sweep space.toml --dask slurm:8"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

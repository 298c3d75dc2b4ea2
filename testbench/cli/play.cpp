#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "hw/noc/mesh_nodes.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/progress.h"
#include "testbench/trace/bus_trace.h"
#include "testbench/trace/trace_play.h"

namespace systole::testbench {
namespace {

using Timing = tlm_model::TracePlayer::Timing;

struct PlayCommand {
  std::string path, trace;
  MachineOptions machine;
  Timing timing = Timing::kElapsed;
  std::uint32_t outstanding = 0;
  bool json = false;
};

void list_files(const PlayCommand& options, CommandFiles& files) {
  files.reads("trace", options.path);
  files.reads_machine("--machine", options.machine.machine);
  files.writes("--trace", options.trace);
}

int run(const PlayCommand& options) {
  const hw::Machine machine = load_machine(options.machine);
  if (hw::has_mesh(machine)) {
    throw hw::InputError("noc.columns: found " + std::to_string(machine.noc.columns) +
                         ", expected 0: a trace is of requests on a bus");
  }
  const BusTrace trace = read_bus_trace(options.path, machine);
  BusTraceWriter writer(options.trace, machine);
  std::optional<Progress> bar(std::in_place, trace.transactions.size());
  PlayOptions how;
  how.timing = options.timing;
  how.outstanding = options.outstanding;
  writer.observe(how.observers);
  how.progress = [&bar](std::size_t transactions) { bar->update(transactions); };
  const PlayResult result = play_trace(trace, machine, how);
  bar.reset();
  writer.commit();
  if (options.json) {
    print_json(play_json(trace, machine, result));
  } else {
    print_text(play_text(trace, machine, result, {options.trace}));
  }
  return kExitOk;
}

}  // namespace

void add_play_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<PlayCommand>();
  CLI::App& command = *app.add_subcommand("play", "play a trace of a bus on a machine's memory");
  command.add_option("trace", options->path, ".csv, .stl (DRAMSys) or .trace (Ramulator)")
      ->type_name("FILE")
      ->required();
  add_machine_options(command, options->machine);
  const std::map<std::string, Timing> timings{{"elapsed", Timing::kElapsed},
                                              {"dependent", Timing::kDependent}};
  command
      .add_option_function<std::string>(
          "--timing",
          [options, timings](const std::string& name) { options->timing = timings.at(name); },
          "ask in the recorded cycles or after answers")
      ->type_name("elapsed|dependent")
      ->check(CLI::IsMember({"elapsed", "dependent"}).description(""));
  require_positive(*command
                        .add_option("--outstanding", options->outstanding,
                                    "in flight of an initiator; default: no limit")
                        ->type_name("N"));
  command.add_option("--trace", options->trace, "write what crosses the bus")
      ->type_name("FILE.csv");
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(command, {"systole play run.csv.gz -m gemmini",
                         "systole play run.csv.gz -m gemmini --timing dependent \\\n    --set "
                         "dram.channels=2",
                         "systole play other.stl -m transformer --outstanding 16",
                         "systole play run.csv.gz -m gemmini --trace run.stl"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

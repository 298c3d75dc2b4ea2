#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/model_files.h"
#include "testbench/cli/command.h"
#include "testbench/cli/common_options.h"
#include "testbench/cli/outputs.h"
#include "testbench/common/progress.h"
#include "testbench/network/networks.h"
#include "testbench/network/run_subject.h"
#include "testbench/report/measurement.h"
#include "testbench/report/report_run.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/rtl_engines.h"
#include "testbench/run/rtl_waves.h"
#include "testbench/wave/timeline.h"
#include "testbench/wave/wave.h"

namespace systole::testbench {
namespace {

struct RunOptions {
  MachineOptions machine;
  std::string model;
  SizeOptions size;
  std::string input;
  std::size_t limit = 0;  ///< 0: all
  bool check = false;
  bool functional = true;
  bool json = false;
  std::optional<double> min_accuracy;
  std::string stats;
  WaveOptions wave;
  TimelineOptions timeline;
};

void check_options(const RunOptions& options) {
  if (!options.functional && (options.check || options.min_accuracy)) {
    throw hw::InputError(
        "--functional off: --check and --min-accuracy need values, expected --functional on");
  }
  // Not the parser's range check, which lets "nan" pass.
  if (options.min_accuracy && !(*options.min_accuracy >= 0.0 && *options.min_accuracy <= 1.0)) {
    throw hw::InputError(
        fmt::format("--min-accuracy: found {}, expected 0 to 1", *options.min_accuracy));
  }
}

/// What is recorded is named by one program.
void check_recordings(const RunOptions& options, const RunSubject& subject) {
  const bool several = options.wave.inferences != 1 || options.timeline.inferences != 1;
  if (several && subject.next_step()) {
    throw hw::InputError(fmt::format(
        "--wave-images and --timeline-images: each {} has a program of its own, expected 1",
        options.size.decode ? "token" : "text with padding"));
  }
}

void list_files(const RunOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.reads_model("--model", options.model, model::find_model);
  files.reads_pictures("--input", options.input.empty() ? default_data() : options.input);
  files.writes("--stats", options.stats);
  files.writes("--timeline", options.timeline.path);
  if (options.wave.path.empty()) return;
  for (const std::string& path : Wave::files(options.wave.path)) files.writes("--wave", path);
  for (const std::string& block : rtl_blocks()) {
    for (const std::string& path : RtlWaves::files(options.wave.path, block)) {
      files.writes("--wave", path);
    }
  }
}

int run(const RunOptions& options) {
  check_options(options);
  const hw::Machine machine = load_machine(options.machine);
  std::optional<SimulationBar> bar(std::in_place);  // its second begins with the work
  const RunSubject subject({options.model, options.size, options.input, options.limit,
                            options.functional, options.min_accuracy.has_value()},
                           machine);
  check_recordings(options, subject);
  JsonOutput stats(options.stats);

  SimulationOptions simulation;
  simulation.functional = options.functional;
  simulation.check = options.check;
  simulation.wave = options.wave;
  simulation.next_step = subject.next_step();
  std::optional<Timeline> timeline;
  if (!options.timeline.path.empty()) {
    timeline.emplace(options.timeline, subject.mapping().program, machine.core.clock_mhz);
    simulation.observer = &*timeline;
  }
  RtlReport rtl;
  RtlWaves rtl_waves(options.wave.path, machine);
  tlm_model::Engines engines = make_engines(machine, rtl_waves.options(), rtl);
  simulation.progress = [&bar](const SimulationProgress& now) { bar->update(now); };
  Measurement measurement = measure(machine, subject.network().name, subject.macs(), simulation,
                                    simulate(subject.graph(), subject.mapping(), machine,
                                             std::move(engines), subject.inputs(), simulation));
  bar.reset();
  measurement.rtl = rtl;
  measurement.size = subject.network().size;
  measurement.past = subject.past();
  rtl_waves.write();
  if (options.functional && !subject.pictures().labels.empty()) {
    measurement.accuracy =
        accuracy_of(subject.network(), subject.pictures(), measurement.result.outputs);
  }

  const nlohmann::ordered_json document = to_json(measurement);
  stats.write(document);
  if (timeline) timeline->write();
  std::vector<std::pair<std::string, std::string>> notes;
  if (measurement.result.wave_is_cut_short) {
    notes.emplace_back("waveform", fmt::format("ends at its limit of {} MiB, see --wave-from",
                                               options.wave.max_bytes >> 20));
  }
  if (options.json) {
    print_json(document);
  } else {
    print_text(
        report_text(measurement, {options.stats, options.wave.path, options.timeline.path}, notes));
  }
  const bool accurate = !options.min_accuracy || *measurement.accuracy >= *options.min_accuracy;
  return accurate && measurement.mismatches() == 0 ? kExitOk : kExitCheckFailed;
}

void add_wave_options(CLI::App& command, WaveOptions& wave) {
  CLI::Option* const path =
      command.add_option("--wave", wave.path, "write a waveform and a GTKWave view");
  path->type_name("FILE.vcd");
  command.add_option("--wave-images", wave.inferences, "record N pictures, 0 all; default: 1")
      ->type_name("N")
      ->needs(path);
  command.add_option("--wave-from", wave.from_cycle, "first recorded core cycle")
      ->type_name("CYCLE")
      ->needs(path);
  command.add_option("--wave-to", wave.to_cycle, "end of the recording")
      ->type_name("CYCLE")
      ->needs(path);
}

void add_timeline_options(CLI::App& command, TimelineOptions& timeline) {
  CLI::Option* const path =
      command.add_option("--timeline", timeline.path, "write a timeline for ui.perfetto.dev");
  path->type_name("FILE.json");
  command
      .add_option("--timeline-images", timeline.inferences, "show N pictures, 0 all; default: 1")
      ->type_name("N")
      ->needs(path);
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "run a model on a machine, input by input");
  add_machine_options(command, options->machine);
  add_strategy(command, options->machine);
  add_rtl(command, options->machine);
  command.add_option("--model", options->model, "an integer model or a known shape")
      ->type_name("NAME|FILE")
      ->required();
  add_size_options(command, options->size);
  command.add_flag("--decode", options->size.decode, "one token after the other, keys cached");
  command.add_option("--past", options->size.past, "tokens in the cache of --decode; default: 0")
      ->type_name("N");
  command
      .add_option("-i,--input", options->input, "pictures, by default the test digits, or texts")
      ->type_name("FILE|DIR");
  require_positive(*command
                        .add_option("-n,--limit", options->limit,
                                    "the first N pictures or texts, N seeded inputs")
                        ->type_name("N"));
  command.add_flag("--check", options->check, "compare every operator with the reference");
  add_functional(command, options->functional);
  command.add_option("--min-accuracy", options->min_accuracy, "exit with 1 below this fraction")
      ->type_name("0..1");
  command.add_option("--stats", options->stats, "write the statistics")->type_name("FILE.json");
  add_timeline_options(command, options->timeline);
  add_wave_options(command, options->wave);
  command.add_flag("--json", options->json, "print the statistics instead of tables");
  add_examples(command,
               {"systole run --machine gemmini --model vit17 --check",
                "systole run -m transformer --model vit65 -n 10 --stats run.json",
                "systole run -m transformer --model bert-base --length 512 --check",
                "systole run -m gemmini --model gpt2 -l 256 --layers 2 --functional off",
                "systole run -m transformer --model gpt2 --length 16 --decode --past 100",
                "systole run -m gemmini --model vit17 -n 1 --wave run.vcd --timeline run.json",
                "systole run -m my.toml --model vit17 --set array.rows=32 --json"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

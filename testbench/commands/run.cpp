#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/error.h"
#include "hw/printable.h"
#include "mapper/mapping.h"
#include "model/dataset.h"
#include "testbench/commands/command.h"
#include "testbench/commands/common_options.h"
#include "testbench/measurement.h"
#include "testbench/networks.h"
#include "testbench/outputs.h"
#include "testbench/progress.h"
#include "testbench/report_run.h"
#include "testbench/tensors.h"

namespace systole::testbench {
namespace {

struct Options {
  MachineOptions machine;
  std::string model;
  std::string input;
  std::size_t limit = 0;  ///< 0: all
  bool check = false;
  bool functional = true;
  bool json = false;
  std::optional<double> min_accuracy;
  std::string stats, wave;
};

void check_options(const Options& options) {
  if (!options.functional && (options.check || options.min_accuracy)) {
    throw hw::InputError(
        "--functional=off: --check and --min-accuracy need values, expected --functional=on");
  }
  require_distinct({options.stats, options.wave});
}

int run(const Options& options) {
  check_options(options);
  const hw::Machine machine = load_machine_to_run(options.machine);
  const Network network = load_network(options.model, machine);
  const std::string source = options.input.empty() ? default_data() : options.input;
  const model::Dataset data = model::load_images(source);
  const auto inputs = network_inputs(network, data, options.limit);
  if (options.min_accuracy && data.labels.empty()) {
    throw hw::InputError(hw::printable(source) + ": has no labels, which --min-accuracy needs");
  }
  const mapper::Mapping mapping = mapper::map_graph(network.graph, machine);
  JsonOutput stats(options.stats);

  SimulationOptions simulation;
  simulation.functional = options.functional;
  simulation.check = options.check;
  simulation.wave.path = options.wave;
  Measurement measurement;
  {
    Progress progress(inputs.size());
    simulation.progress = [&progress](std::size_t done) { progress.update(done); };
    measurement = measure(machine, network.vit.name, macs_of(network.graph), simulation,
                          simulate(network.graph, mapping, machine, tlm_model::make_models(machine),
                                   inputs, simulation));
  }
  if (options.functional && !data.labels.empty()) {
    measurement.accuracy = accuracy_of(network, data, measurement.result.outputs);
  }

  const nlohmann::ordered_json document = to_json(measurement);
  stats.write(document);
  if (options.json) {
    print_json(document);
  } else {
    print_text(report_text(measurement, {options.stats, options.wave}));
  }
  const bool accurate = !options.min_accuracy || *measurement.accuracy >= *options.min_accuracy;
  return accurate && measurement.result.check.mismatches == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("run", "run a model on a machine, picture by picture");
  add_machine_options(command, options->machine);
  command.add_option("--model", options->model, "integer model")
      ->type_name("NAME|FILE")
      ->required();
  command.add_option("-i,--input", options->input, "pictures; default: the test digits")
      ->type_name("FILE|DIR");
  command.add_option("-n,--limit", options->limit, "only the first N pictures")
      ->type_name("N")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""));
  command.add_flag("--check", options->check, "compare every operator with the reference");
  add_functional(command, options->functional);
  command.add_option("--min-accuracy", options->min_accuracy, "exit with 1 below this fraction")
      ->type_name("0..1")
      ->check(CLI::Range(0.0, 1.0).description(""));
  command.add_option("--stats", options->stats, "write the statistics")->type_name("FILE.json");
  command.add_option("--wave", options->wave, "write a waveform")->type_name("FILE.vcd");
  command.add_flag("--json", options->json, "print the statistics instead of tables");
  add_examples(command, {"systole run --machine gemmini --model vit17 --check",
                         "systole run -m transformer --model vit65 -n 10 --stats run.json",
                         "systole run -m gemmini --model vit17 -n 1 --wave run.vcd",
                         "systole run -m my.toml --model vit17 --set array.rows=32 --json"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench

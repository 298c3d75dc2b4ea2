#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/model_files.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/inject/report_inject.h"
#include "testbench/network/networks.h"
#include "testbench/network/run_subject.h"
#include "testbench/report/machine_json.h"

namespace systole::testbench {
namespace {

struct InjectOptions {
  MachineOptions machine;
  std::string model, input;
  SizeOptions size;
  std::size_t limit = 1;
  std::vector<std::string> where;
  std::uint64_t injections = 1000, seed = 1;
  std::uint32_t flips = 1;
  std::optional<std::uint64_t> workers;
  double watchdog = 2;
  bool full = false, json = false;
  std::optional<std::uint64_t> at, address, picture;
  std::optional<std::uint32_t> bit;
  std::string stats, csv;
};

void list_files(const InjectOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.reads_model("--model", options.model, model::find_model);
  files.reads_pictures("--input", options.input.empty() ? default_data() : options.input);
  files.writes("--stats", options.stats);
  files.writes("--csv", options.csv);
}

std::vector<FaultTarget> targets_of(const InjectOptions& options) {
  std::vector<FaultTarget> targets;
  for (const std::string& name : options.where) {
    const FaultTarget target = fault_target(name);
    if (std::find(targets.begin(), targets.end(), target) != targets.end()) {
      throw hw::InputError("--where: " + name + " twice, expected each once");
    }
    targets.push_back(target);
  }
  if (!targets.empty()) return targets;
  // Two bits flip in words of memories alone.
  for (const FaultTarget target : kFaultTargets) {
    if (options.flips == 1 || !array_register(target)) targets.push_back(target);
  }
  return targets;
}

CampaignRequest request_of(const InjectOptions& options) {
  CampaignRequest request;
  request.targets = targets_of(options);
  request.injections = options.injections;
  request.seed = options.seed;
  request.flips = options.flips;
  request.workers = options.workers.value_or(std::max(1U, std::thread::hardware_concurrency()));
  request.full = options.full;
  request.watchdog = options.watchdog;
  if (!(request.watchdog > 1 && request.watchdog <= 1000)) {
    throw hw::InputError("--watchdog: expected more than 1, and 1000 at most");
  }
  if (options.flips != 1 && options.flips != 2) {
    throw hw::InputError("--flips: found " + std::to_string(options.flips) + ", expected 1 or 2");
  }
  if (const std::uint32_t bits = bits_per_address(request.targets.front());
      options.bit.value_or(0) >= bits) {
    throw hw::InputError("--bit: found " + std::to_string(*options.bit) + ", expected 0 to " +
                         std::to_string(bits - 1));
  }
  const bool one = options.at.has_value();
  if (one != options.address.has_value() || one != options.bit.has_value() ||
      (!one && options.picture)) {
    throw hw::InputError("--at, --address, --bit: one injection, expected all three of them");
  }
  if (!one) return request;
  if (options.where.size() != 1) {
    throw hw::InputError("--at: one injection, expected one name after --where");
  }
  const std::uint64_t picture = options.picture.value_or(0);
  request.one = Injection{request.targets.front(),
                          static_cast<std::uint32_t>(picture),
                          *options.at,
                          *options.address,
                          *options.bit,
                          options.flips};
  return request;
}

int run(const InjectOptions& options) {
  InjectReport report;
  report.request = request_of(options);
  const hw::Machine machine = load_machine(options.machine);
  if (machine.array.split != hw::ArraySplit::kNone) {
    throw hw::InputError("array.split: faults in halves of weights are unknown, expected \"none\"");
  }
  std::size_t limit = options.limit;
  if (report.request.one) limit = std::max<std::size_t>(limit, report.request.one->picture + 1U);
  const RunSubject subject({options.model, options.size, options.input, limit, true, false},
                           machine);
  if (subject.next_step()) {
    throw hw::InputError("inject: expected a network of one program for all inputs");
  }
  if (report.request.one && report.request.one->picture >= subject.inputs().size()) {
    throw hw::InputError("--picture: there are " + std::to_string(subject.inputs().size()) +
                         " inputs, expected one of them");
  }
  JsonOutput stats(options.stats);
  std::optional<hw::AtomicFile> csv;
  if (!options.csv.empty()) csv.emplace(options.csv);
  FaultSubject faults{subject.graph(), subject.mapping(), machine, subject.inputs(), nullptr};
  if (classifies(subject.network())) {
    faults.label = [&](const std::vector<std::uint8_t>& outputs) {
      return class_of(subject.graph(), outputs);
    };
  }
  report.model = subject.network().name;
  report.machine = machine.name;
  report.pictures = subject.inputs().size();
  report.result = run_campaign(faults, report.request);
  nlohmann::ordered_json document = inject_json(report);
  document["machine_keys"] = machine_json(machine);
  stats.write(document);
  if (csv) {
    write_inject_csv(csv->stream(), report);
    csv->commit();
  }
  options.json ? print_json(document) : print_text(inject_text(report));
  return kExitOk;
}

}  // namespace

void add_inject_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<InjectOptions>();
  CLI::App& command =
      *app.add_subcommand("inject", "flip bits of a run, count what becomes of them");
  add_machine_options(command, options->machine);
  add_strategy(command, options->machine);
  add_model(command, options->model).required();
  add_size_options(command, options->size);
  command.add_option("-i,--input", options->input, "pictures; default: those of the models")
      ->type_name("FILE|DIR");
  require_positive(
      *command.add_option("-n,--limit", options->limit, "draw from the first N inputs; default: 1")
           ->type_name("N"));
  command.add_option("--where", options->where, "places (docs/soft-errors.md); default: all")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  require_positive(
      *command.add_option("--injections", options->injections, "of each --where; default: 1000")
           ->type_name("N"));
  command.add_option("--seed", options->seed, "of the random injections; default: 1")
      ->type_name("N");
  command.add_option("--flips", options->flips, "bits of an injection, neighbours; default: 1")
      ->type_name("1|2");
  command.add_option("--at", options->at, "one injection, at this cycle")->type_name("CYCLE");
  command.add_option("--address", options->address, "... this byte, or element of the array")
      ->type_name("N");
  command.add_option("--bit", options->bit, "... and this bit of it")->type_name("N");
  command.add_option("--picture", options->picture, "... in the run of this input; default: 0")
      ->type_name("N");
  command.add_option("--watchdog", options->watchdog, "times the cycles of a run; default: 2")
      ->type_name("X");
  command.add_flag("--full", options->full, "simulate every injection from the start");
  require_positive(
      *command
           .add_option("-j,--workers", options->workers, "processes at once; default: all cores")
           ->type_name("N"));
  command.add_option("--stats", options->stats, "write the JSON document")->type_name("FILE.json");
  command.add_option("--csv", options->csv, "write a line per injection")->type_name("FILE.csv");
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(command,
               {"systole inject -m transformer --model vit65 --injections 20000 -n 8",
                "systole inject -m transformer --model vit65 --where weights --csv weights.csv",
                "systole inject -m transformer --model vit65 --where scratchpad --at 5000 "
                "--address 64 --bit 7"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/bound/lower_bound.h"
#include "analysis/mapped_cost.h"
#include "base/error.h"
#include "model/model_files.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/progress.h"
#include "testbench/explain/report_explain.h"
#include "testbench/page/report_page.h"
#include "testbench/report/machine_json.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/wave/timeline.h"

namespace systole::testbench {
namespace {

struct ExplainOptions {
  MachineOptions machine;
  std::string model;
  SizeOptions size;
  std::size_t confirm = 5;
  bool no_what_if = false;
  bool json = false;
  std::string report;
};

/// One inference without values, on which cycles do not depend; of tokens one by one the first.
RunRequest request_of(const ExplainOptions& options) {
  RunRequest request{options.model, options.size, {}, 1, false, false};
  if (options.size.decode) {
    request.limit = 0;
    request.size.length = 1;
  }
  return request;
}

void list_files(const ExplainOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.reads_model("--model", options.model, model::find_model);
  files.writes("--report", options.report);
}

int run(const ExplainOptions& options) {
  if (options.size.decode && options.size.length) {
    throw hw::InputError("--length: explains one token of --decode, expected none");
  }
  const hw::Machine machine = load_machine(options.machine);
  const RunSubject subject(request_of(options), machine);
  ReportPage page(options.report);
  WhatIfs changes;
  if (!options.no_what_if) {
    BatchProgress progress;
    changes = what_if(request_of(options), subject, machine, options.confirm);
  }
  SimulationOptions simulation;
  simulation.functional = false;
  simulation.next_step = subject.next_step();
  SimulationBar bar;
  simulation.progress = [&bar](const SimulationProgress& now) { bar.update(now); };
  std::optional<Timeline> timeline;
  if (page.wanted()) {
    timeline.emplace(page.timeline(), 1, subject.mapping().program, machine.core.clock_mhz);
    simulation.observer = [&](const tlm_model::CommandTrace& trace) { timeline->add(trace); };
  }
  RtlReport rtl;
  Measurement measurement =
      measure(machine, subject.network().name, subject.macs(), simulation,
              simulate(subject.graph(), subject.mapping(), machine, make_engines(machine, {}, rtl),
                       subject.inputs(), simulation));
  measurement.size = subject.network().size;
  measurement.past = subject.past();
  measurement.rtl = rtl;
  measurement.estimates = analysis::estimate(subject.mapping(), machine);
  ExplainReport report = explain_run(std::move(measurement), subject.mapping().program,
                                     analysis::lower_bound(subject.graph(), machine));
  report.changes = relate(std::move(changes), report.explanation);
  if (page.wanted()) {
    timeline->end();
    page.write(machine, to_json(report.measurement), explain_json(report));
  }
  if (options.json) {
    nlohmann::ordered_json document = explain_json(report);
    document["machine_keys"] = machine_json(machine);
    print_json(document);
  } else {
    print_text(explain_text(report));
  }
  return kExitOk;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App& command = *app.add_subcommand("explain", "why a run takes its cycles, what would help");
  add_machine_options(command, options->machine);
  add_strategy(command, options->machine);
  add_model(command, options->model).required();
  add_size_options(command, options->size);
  command.add_flag("--decode", options->size.decode, "one token, keys cached");
  command.add_option("--past", options->size.past, "tokens in the cache of --decode; default: 0")
      ->type_name("N");
  command.add_option("--confirm", options->confirm, "simulate the best N changes; default: 5")
      ->type_name("N");
  command.add_flag("--no-what-if", options->no_what_if, "no changes of the machine");
  add_report(command, options->report);
  command.add_flag("--json", options->json, "print as JSON, with every step of the path");
  add_examples(command, {"systole explain -m transformer --model bert-base --length 512",
                         "systole explain -m gemmini --model vit65 --confirm 10",
                         "systole explain -m my.toml --model gpt2 --decode --past 512 --json"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "hw/program/disassembly.h"
#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "model/model_files.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/progress.h"
#include "testbench/estimate/report_map.h"
#include "testbench/network/network_size.h"
#include "testbench/network/networks.h"
#include "testbench/report/fusion_run.h"
#include "testbench/report/machine_json.h"
#include "testbench/report/report_fusion.h"
#include "testbench/run/mapping_search.h"

namespace systole::testbench {
namespace {

constexpr const char* kObjectiveKey = "mapper.objective";

struct MapOptions {
  MachineOptions machine;
  SizeOptions size;
  std::string model, chain, out, assembly, read;
  std::string objective;
  std::size_t confirm = 3;
  bool json = false;
  bool explain = false;
  bool simulate = false;  ///< of a chain, what fusion saves
};

/// Writes the listing that was asked for; one for standard output is returned.
std::string listing(const MapOptions& options, const hw::Program& program) {
  if (options.assembly.empty()) return {};
  std::string text = hw::disassemble(program);
  if (options.assembly == kStandardOutput) return text;
  hw::write_file_atomically(options.assembly, text);
  return {};
}

/// Disassembles a program file, which has to fit the machine: its own, if none is given.
int disassemble(MapOptions options) {
  if (!options.model.empty() || !options.chain.empty() || options.json || options.explain ||
      !options.out.empty()) {
    throw hw::InputError(
        "--read: disassembles a program, expected no --model, --chain, --json, --explain or "
        "--out");
  }
  std::optional<hw::Machine> machine;
  if (!options.machine.machine.empty() || !options.machine.settings.empty()) {
    machine = load_machine(options.machine.machine, options.machine.settings);
  }
  if (options.assembly.empty()) options.assembly = kStandardOutput;
  print_text(
      listing(options, mapper::read_program(options.read, machine ? &*machine : nullptr).program));
  return kExitOk;
}

void list_files(const MapOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.reads_model("--model", options.model, model::find_model);
  files.reads("--chain", options.chain);
  files.reads("--read", options.read);
  files.writes("--out", options.out);
  if (options.assembly != kStandardOutput) files.writes("--asm", options.assembly);
}

/// Throws InputError for options that do not go together.
void check_options(const MapOptions& options) {
  if (options.machine.machine.empty() || options.model.empty() == options.chain.empty()) {
    throw hw::InputError("map: expected --machine and --model or --chain, or --read");
  }
  if (options.simulate && options.chain.empty()) {
    throw hw::InputError("--simulate: what fusion saves in a chain, expected --chain");
  }
  if (!options.chain.empty()) require_no_size(options.chain, options.size);
  if (options.json && options.assembly == kStandardOutput) {
    throw hw::InputError("--json and --asm -: both write to standard output, expected one");
  }
  if (options.explain && options.assembly == kStandardOutput) {
    throw hw::InputError("--explain and --asm -: both write to standard output, expected one");
  }
}

/// A chain with nothing fused, with stages after anchors, and with all that may fuse.
FusionComparison compare_fusion(const Network& network, const hw::Machine& machine,
                                bool simulated) {
  FusionComparison comparison{network.name, machine.name, simulated, {}, {}};
  if (machine.preop.lanes == 0) {
    comparison.notes.push_back(
        fmt::format("all: with preop.lanes {}, as many as postop.lanes.", machine.postop.lanes));
  }
  std::vector<FusionTask> tasks;
  for (std::size_t i = 0; i < kFusionSteps; ++i) {
    const hw::Machine step = with_fusion(machine, kFusionStepNames.at(i).level);
    if (simulated) {
      tasks.push_back({step, [&network](const hw::Machine&) { return network.graph; },
                       seeded_inputs(network, 1), true});
    } else {
      comparison.runs.at(i) =
          expected_fusion(network.graph, mapper::map_graph(network.graph, step));
    }
  }
  std::vector<FusionRun> runs = run_fusion(tasks);
  std::move(runs.begin(), runs.end(), comparison.runs.begin());
  return comparison;
}

int run(const MapOptions& options) {
  if (!options.read.empty()) return disassemble(options);
  check_options(options);
  hw::Machine machine = load_machine(options.machine);
  if (!options.objective.empty()) {
    hw::set_key(machine, std::string(kObjectiveKey) + "=" + options.objective);
  }
  // The program is the same whatever the weights are.
  const Network network = options.chain.empty()
                              ? load_network(options.model, options.size, machine, false)
                              : chain_network(options.chain, machine);
  std::optional<MappingSearch> search;
  if (machine.mapper.strategy == hw::MappingStrategy::kSearch) {
    const BatchProgress progress;
    search = search_mappings(network.graph, machine, options.confirm);
    machine.mapper = search->chosen().mapper;
  }
  const mapper::Mapping mapping = mapper::map_graph(network.graph, machine);
  const std::string text = listing(options, mapping.program);
  if (!options.out.empty()) {
    mapper::write_program(options.out, network.name, machine, network.graph, mapping);
  }
  std::optional<FusionComparison> fusion;
  if (!options.chain.empty()) fusion = compare_fusion(network, machine, options.simulate);
  if (options.json) {
    nlohmann::ordered_json document = mapping_json(network.name, machine.name, mapping);
    if (search) document["search"] = search_json(*search);
    if (options.explain) document["fusion"] = fusion_json(network.graph, mapping);
    if (fusion) document["chain"] = fusion_comparison_json(*fusion);
    document["machine_keys"] = machine_json(machine);
    print_json(document);
  } else if (!text.empty()) {
    print_text(text);
  } else {
    print_text(mapping_text(network.name, machine.name, mapping, {options.out, options.assembly}) +
               (options.explain ? "\n" + fusion_text(network.graph, mapping) : "") +
               (fusion ? "\n" + fusion_comparison_text(*fusion) : "") +
               (search ? "\n" + search_text(*search) : ""));
  }
  return fusion && fusion->simulated && fusion->differing() != 0 ? kExitCheckFailed : kExitOk;
}

}  // namespace

void add_map_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<MapOptions>();
  CLI::App& command = *app.add_subcommand("map", "map a model to a machine, print the program");
  command.add_option("-m,--machine", options->machine.machine, "machine: a preset or a TOML file")
      ->type_name("NAME|FILE");
  add_settings(command, options->machine.settings);
  add_strategy(command, options->machine);
  const std::vector<std::string_view>& objectives = hw::find_machine_key(kObjectiveKey)->words;
  command.add_option("--objective", options->objective, "what --strategy search minimises")
      ->type_name(fmt::format("{}", fmt::join(objectives, "|")))
      ->check(CLI::IsMember(std::vector<std::string>(objectives.begin(), objectives.end()))
                  .description(""));
  command.add_option("--confirm", options->confirm, "mappings to simulate in a search; default: 3")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, std::size_t{100}).description(""));
  add_model(command, options->model);
  command.add_option("--chain", options->chain, "map your own chain of operators, a TOML file")
      ->type_name("FILE.toml");
  command.add_flag("--simulate", options->simulate, "simulate a chain with and without fusion");
  add_size_options(command, options->size);
  command.add_option("-o,--out", options->out, "write the program for run --program")
      ->type_name("FILE");
  command.add_option("--asm", options->assembly, "write a listing; -: standard output")
      ->type_name("FILE|-");
  command.add_option("--read", options->read, "disassemble a program file instead")
      ->type_name("FILE");
  command.add_flag("--explain", options->explain, "what each operator is fused with, or why not");
  command.add_flag("--json", options->json, "print the summary as JSON");
  add_examples(command, {"systole map --machine gemmini --model vit17",
                         "systole map -m gemmini --model vit17 --out vit17.prog --asm vit17.txt",
                         "systole map -m transformer --model bert-base --length 512",
                         "systole map -m transformer --model vit65 --explain",
                         "systole map -m transformer --chain chain.toml --simulate",
                         "systole map -m gemmini --model vit17 --strategy search --objective edp",
                         "systole map --read vit17.prog"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

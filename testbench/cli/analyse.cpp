#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "mapper/mapping.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/seeded/shapes.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/estimate/report_bound.h"
#include "testbench/estimate/report_cost.h"
#include "testbench/estimate/report_dataflow.h"
#include "testbench/estimate/report_estimate.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/network/networks.h"
#include "testbench/report/machine_json.h"
#include "testbench/report/plot.h"
#include "testbench/run/operator_timing.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {
namespace {

/// Texts longer than a network has positions for: the survey has them.
constexpr std::uint32_t kMaxLength = 1 << 20;
/// As long as the mapper's programs stay below some hundred thousand commands.
constexpr std::uint32_t kMaxMappedLength = 4096;

struct AnalyseOptions {
  MachineOptions machine;
  std::string model, product, dataflow;
  SizeOptions size;
  std::int64_t projections = 4;
  std::string plots;
  bool simulate = false, bound = false, json = false;

  [[nodiscard]] bool has_machine() const {
    return !machine.machine.empty() || !machine.settings.empty() || !machine.strategy.empty();
  }
};

void check_options(const AnalyseOptions& options) {
  if (options.model.empty() == options.product.empty()) {
    throw hw::InputError("analyse: expected --model or --product, one of them");
  }
  if (options.product.empty() != options.dataflow.empty()) {
    throw hw::InputError("--dataflow: compares the dataflows of a --product, expected both");
  }
  if (!options.product.empty() && (options.size.any() || options.simulate || options.bound)) {
    throw hw::InputError(
        "--length, --layers, --heads, --d, --ffn, --bound and --simulate: only of use with "
        "--model");
  }
  if ((options.simulate || options.bound) && !options.has_machine()) {
    throw hw::InputError(std::string(options.simulate ? "--simulate" : "--bound") +
                         ": on what? expected a --machine");
  }
  if (options.projections != 3 && options.projections != 4) {
    throw hw::InputError(
        fmt::format("--projections: found {}, expected 3 or 4", options.projections));
  }
}

int compare(const AnalyseOptions& options) {
  const MatmulShape shape = parse_matmul_shape(options.product);
  const hw::Machine machine = load_machine(options.machine);
  std::vector<analysis::Stationary> dataflows;
  for (const analysis::Stationary dataflow : analysis::kStationaries) {
    if (options.dataflow == "all" || options.dataflow == short_name(dataflow)) {
      dataflows.push_back(dataflow);
    }
  }
  const DataflowReport report =
      compare_dataflows(machine, {shape.m, shape.n, shape.k}, std::move(dataflows));
  if (options.json) {
    nlohmann::ordered_json document = dataflow_json(report);
    document["machine_keys"] = machine_json(machine);
    print_json(document);
  } else {
    print_text(dataflow_text(report));
  }
  return kExitOk;
}

NetworkSize size_of(const AnalyseOptions& options) {
  return network_size(options.model, options.size,
                      options.has_machine() ? kMaxMappedLength : kMaxLength);
}

AnalysedNetwork network_of(const AnalyseOptions& options) {
  AnalysedNetwork network;
  network.name = hw::printable(options.model);
  network.projections = static_cast<std::uint32_t>(options.projections);
  if (is_shape_name(options.model)) {
    const NetworkSize size = size_of(options);
    network.kind = size.kind;
    network.shape = size.shape;
    network.llama = size.llama;
    // Closed forms have elements of one byte.
    if (size.four_bits && !options.has_machine()) {
      throw hw::InputError(
          "--weight-bits: 4 needs a machine that expands them, expected --machine");
    }
    if (size.llama && size.llama->experts != 0 && !options.has_machine()) {
      throw hw::InputError("experts: closed forms have none, expected --machine");
    }
    if (hw::is_mx(size.mx) && !options.has_machine()) {
      throw hw::InputError(
          "--weight-format: needs a machine that expands weights, expected --machine");
    }
    if (size.llama && options.projections != 4) {
      throw hw::InputError("--projections: the survey has no Llama, expected none");
    }
    network.positions = size.positions;
    network.length = size.length;
    return network;
  }
  const std::string path = model::find_model(options.model);
  const model::ModelKind kind = model::model_kind(path);
  if (kind == model::ModelKind::kIntegerText) {
    const model::TextShape shape = model::load_integer_text(path).shape;
    SizeOptions others = options.size;
    others.length.reset();
    require_no_size(options.model, others);
    network.kind =
        shape.encoder.causal ? model::NetworkKind::kDecoder : model::NetworkKind::kEncoder;
    network.shape = shape.encoder;
    network.positions = shape.positions;
    network.length = text_length(network.name, shape.positions, options.size.length);
    return network;
  }
  if (kind == model::ModelKind::kIntegerSeq2Seq) {
    network.name = model::load_integer_seq2seq(path).name;
    return network;
  }
  if (kind == model::ModelKind::kIntegerLlama) {
    throw hw::InputError(hw::printable(options.model) +
                         ": a Llama of a file, expected its shape by name: smollm2-135m");
  }
  require_no_size(options.model, options.size);
  if (kind == model::ModelKind::kIntegerOperators) {
    network.name = model::read_network_document(model::Safetensors::open(path)).name;
    return network;
  }
  if (kind == model::ModelKind::kIntegerLayers) {
    const model::IntegerLayers layers = model::load_integer_layers(path);
    network.shape = layers.encoder.shape;
    network.kind =
        network.shape.causal ? model::NetworkKind::kDecoder : model::NetworkKind::kEncoder;
    network.length = network.positions = layers.length;
    return network;
  }
  const model::IntegerVit vit = model::load_integer_vit(path);
  network.name = vit.name;
  network.kind = model::NetworkKind::kVision;
  network.shape = vit.encoder.shape;
  network.length = network.positions = vit.shape.tokens();
  return network;
}

/// Whether the network is a stack of Transformer blocks of one kind.
bool has_closed_forms(const AnalyseOptions& options) {
  if (is_shape_name(options.model)) return !size_of(options).resnet;
  const model::ModelKind kind = model::model_kind(model::find_model(options.model));
  return kind != model::ModelKind::kIntegerOperators && kind != model::ModelKind::kIntegerSeq2Seq;
}

model::Graph graph_of(const AnalyseOptions& options, const hw::Machine& machine) {
  if (!is_shape_name(options.model)) {
    return load_network(options.model, options.size, machine).graph;
  }
  return seeded_network(size_of(options), machine, false).graph;
}

EstimateReport estimate_on(const hw::Machine& machine, const model::Graph& graph,
                           const mapper::Mapping& mapping, bool with_simulation) {
  EstimateReport report;
  report.machine = machine.name;
  report.estimates = analysis::estimate(mapping, machine);
  if (!with_simulation) return report;
  SimulationOptions simulation;
  simulation.functional = false;
  RtlReport rtl;
  SimulationBar bar;
  simulation.progress = [&bar](const SimulationProgress& now) { bar.update(now); };
  const SimulationResult result = simulate(graph, mapping, machine, make_engines(machine, {}, rtl),
                                           std::vector<std::vector<std::uint8_t>>(1), simulation);
  report.cycles = result.cycles.front();
  report.blocks = result.blocks;
  report.timings = time_operators(result.traces, report.estimates);
  return report;
}

void list_files(const AnalyseOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.reads_model("--model", options.model, model::find_model);
  files.writes_plots("--plots", options.plots);
}

int run(const AnalyseOptions& options) {
  check_options(options);
  if (!options.product.empty()) return compare(options);
  const PlotWriter plots(options.plots);
  const AnalysedNetwork network = network_of(options);
  std::optional<CostReport> costs;
  if (has_closed_forms(options)) {
    costs = analyse(network);
  } else if (!options.has_machine()) {
    throw hw::InputError(
        "analyse: " + network.name +
        ": closed forms are those of Transformers of one part, expected --machine");
  }
  std::optional<EstimateReport> estimates;
  std::optional<BoundReport> bound;
  nlohmann::ordered_json machine_keys;
  if (options.has_machine()) {
    const hw::Machine machine = load_machine(options.machine);
    machine_keys = machine_json(machine);
    if (costs) costs->roofline = analysis::roofline_of(machine);
    const model::Graph graph = graph_of(options, machine);
    const mapper::Mapping mapping = mapper::map_graph(graph, machine);
    estimates = estimate_on(machine, graph, mapping, options.simulate);
    if (options.bound) bound = bound_report(graph, mapping, machine);
  }
  if (bound) plots.write({bound_plot(*bound)});
  if (options.json) {
    nlohmann::ordered_json document =
        costs ? cost_json(*costs) : nlohmann::ordered_json{{"model", network.name}};
    if (estimates) document.update(estimate_json(*estimates));
    if (bound) document.update(bound_json(*bound));
    if (!machine_keys.is_null()) document["machine_keys"] = std::move(machine_keys);
    print_json(document);
    return kExitOk;
  }
  std::string text = costs ? cost_text(*costs) : "";
  if (estimates) {
    if (costs) text += "\n";
    if (network.kind == model::NetworkKind::kDecoder) {
      text += fmt::format("below: {} tokens of a prompt at once, every score computed\n\n",
                          network.length);
    }
    text += estimate_text(*estimates);
  }
  if (bound) text += "\n" + bound_text(*bound);
  print_text(text);
  return kExitOk;
}

}  // namespace

void add_analyse_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<AnalyseOptions>();
  CLI::App& command =
      *app.add_subcommand("analyse", "operations, traffic, expected cycles, dataflows");
  command.add_option("--model", options->model, "a known shape or an integer model")
      ->type_name("NAME|FILE");
  add_shape_options(command, options->size);
  command.add_option("--projections", options->projections, "3: leave out one, as the survey does")
      ->type_name("3|4");
  command.add_option("-m,--machine", options->machine.machine, "machine: a preset or a TOML file")
      ->type_name("NAME|FILE");
  add_settings(command, options->machine.settings);
  add_strategy(command, options->machine);
  command.add_flag("--simulate", options->simulate, "compare expected with simulated cycles");
  CLI::Option* const bound =
      command.add_flag("--bound", options->bound, "the least that any mapping takes");
  command.add_option("--plots", options->plots, "draw the least traffic over capacity there")
      ->type_name("DIR")
      ->needs(bound);
  command.add_option("--product", options->product, "C[MxN] = A[MxK] B[KxN] instead of a model")
      ->type_name("MxNxK");
  command.add_option("--dataflow", options->dataflow, "how PEs keep the operands of --product")
      ->type_name("ws|os|rs|nlr|all")
      ->check(CLI::IsMember({"ws", "os", "rs", "nlr", "all"}).description(""));
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(command,
               {"systole analyse --model bert-base --length 512",
                "systole analyse --model bert-large --projections 3 --json",
                "systole analyse --model gpt2 -m gemmini --length 256",
                "systole analyse --model vit65 -m transformer --simulate",
                "systole analyse --model bert-base -m transformer --bound --plots pictures",
                "systole analyse --product 512x768x768 --dataflow all"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

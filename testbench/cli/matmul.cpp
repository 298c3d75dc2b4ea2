#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/bound/lower_bound.h"
#include "analysis/mapped_cost.h"
#include "base/error.h"
#include "hw/array/array.h"
#include "mapper/mapping.h"
#include "model/quantise/quantiser_options.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/wave_options.h"
#include "testbench/common/text.h"
#include "testbench/explain/command_trace.h"
#include "testbench/explain/pipeline_view.h"
#include "testbench/explain/report_explain.h"
#include "testbench/explain/transaction_view.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/network/network_size.h"
#include "testbench/network/tensors.h"
#include "testbench/page/report_page.h"
#include "testbench/report/measurement.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/tensor_file.h"
#include "testbench/stream/report_stream.h"
#include "testbench/trace/bus_trace.h"
#include "testbench/wave/timeline.h"

namespace systole::testbench {
namespace {

struct MatmulOptions {
  MachineOptions machine;
  std::string shape;
  std::string stats, report, outputs;
  CommandViews views;
  WaveOptions wave;
  bool bias = false;
  bool sums = false;
  unsigned weight_bits = model::kWeightBits, activation_bits = model::kWeightBits;
  bool functional = true;
  bool json = false;
};

void list_files(const MatmulOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.writes("--stats", options.stats);
  files.writes("--report", options.report);
  files.writes("--outputs", options.outputs);
  files.writes("--pipeline", options.views.pipeline);
  files.writes("--transactions", options.views.transactions);
  files.writes("--trace", options.views.trace);
  files.writes("--commands", options.views.commands);
  list_wave_files(options.wave, files);
}

/// On a streaming core.
int run_on_stream(const MatmulOptions& options, const MatmulShape& shape) {
  if (options.sums || options.weight_bits != model::kWeightBits ||
      options.activation_bits != model::kWeightBits || !options.machine.strategy.empty() ||
      !options.machine.rtl.empty()) {
    throw hw::InputError(
        "--int32, --weight-bits, --activation-bits, --strategy, --rtl: not of a streaming core, "
        "which requantises and maps by itself");
  }
  const CommandViews& views = options.views;
  if (!views.pipeline.empty() || !views.transactions.empty() || !views.trace.empty() ||
      !views.commands.empty() || !options.wave.path.empty()) {
    throw hw::InputError(
        "--pipeline, --transactions, --trace, --commands, --wave: a streaming core has neither "
        "commands nor a bus, expected a machine that has");
  }
  StreamReport report;
  report.machine = load_stream_machine(options.machine);
  report.request.shape = {shape.m, shape.k, shape.n, 0};
  report.request.product = true;
  report.request.bias = options.bias;
  report.request.functional = options.functional;
  return run_on_streaming_core(report, {options.stats, options.report, options.outputs},
                               options.json);
}

int run(const MatmulOptions& options) {
  const MatmulShape shape = parse_matmul_shape(options.shape);
  const hw::Int4Operands int4{wants_four_bits(options.activation_bits, "--activation-bits"),
                              wants_four_bits(options.weight_bits)};
  if (int4.a && !int4.b) {
    throw hw::InputError("--activation-bits: 4 without --weight-bits 4, expected both");
  }
  if (has_streaming_core(options.machine)) return run_on_stream(options, shape);
  require_values(options.outputs, options.functional);
  const hw::Machine machine = load_machine(options.machine);
  check_program_size(shape, machine);
  const model::Graph graph = make_matmul_graph(shape, machine.datapath, !options.functional,
                                               {options.bias, !options.sums, int4});
  const mapper::Mapping mapping = mapper::map_graph(graph, machine);
  JsonOutput stats(options.stats);
  ReportPage page(options.report);
  std::optional<Timeline> timeline;
  PipelineView pipeline(options.views.pipeline);
  CommandTraceWriter commands(options.views.commands, machine);
  TransactionView transactions(options.views.transactions, machine);

  BusTraceWriter bus_trace(options.views.trace, machine);

  SimulationOptions simulation;
  bus_trace.observe(simulation.bus_observers);
  transactions.observe(simulation.bus_observers);
  if (page.wanted()) {
    timeline.emplace(page.timeline(), 1, mapping.program, machine.core.clock_mhz);
    simulation.observer = [&](const tlm_model::CommandTrace& trace) { timeline->add(trace); };
  }
  simulation.functional = options.functional;
  simulation.check = options.functional;
  simulation.wave = options.wave;
  std::vector<std::vector<std::uint8_t>> inputs(1);
  if (options.functional) inputs.front() = matmul_input(shape, int4.a);
  RtlReport rtl;
  RtlWaves rtl_waves(options.wave.path, machine);
  RtlOptions rtl_options = rtl_waves.options();
  add_own_rtl(options.machine.rtl, rtl_options);
  Measurement measurement;
  {
    SimulationBar bar;
    simulation.progress = [&bar](const SimulationProgress& now) { bar.update(now); };
    measurement = measure(machine, graph.name, shape.macs(), simulation,
                          simulate(graph, mapping, machine, make_engines(machine, rtl_options, rtl),
                                   inputs, simulation));
  }

  measurement.rtl = rtl;
  rtl_waves.write();
  measurement.estimates = analysis::estimate(mapping, machine);
  const hw::Int4Operands multiplied{int4.a && machine.array.split == hw::ArraySplit::kBoth,
                                    int4.b && machine.array.split != hw::ArraySplit::kNone};
  const std::uint64_t compute_cycles =
      hw::lone_matmul_cycles(machine.array, shape.m, shape.n, hw::array_steps(shape.k, multiplied));
  nlohmann::ordered_json document = to_json(measurement);
  document["m"] = shape.m;
  document["n"] = shape.n;
  document["k"] = shape.k;
  if (int4.b) document["weight_bits"] = options.weight_bits;
  if (int4.a) document["activation_bits"] = options.activation_bits;
  document["compute_cycles"] = compute_cycles;
  document["stalls"] = document["blocks"]["array"]["stalled"];
  stats.write(document);
  pipeline.write(mapping.program, measurement.result);
  const std::vector<CoreCommands> cores{
      commands_of(mapping.program, measurement.result, machine.core.clock_mhz)};
  transactions.write(cores);
  commands.write(cores);
  bus_trace.commit();
  if (!options.outputs.empty()) {
    const auto tensor = [&](model::TensorId id,
                            const std::vector<std::vector<std::uint8_t>>& values) {
      const mapper::TensorPlace place = mapper::place_of(graph, mapping, id);
      return tensor_of_inferences(place.name, place.type, place.rows, place.cols, values);
    };
    model::write_safetensors(options.outputs,
                             {tensor(input_tensor(graph), inputs),
                              tensor(output_tensor(graph), measurement.result.outputs)});
  }
  if (page.wanted()) {
    timeline->end();
    page.write(machine, document,
               explain_json(explain_run(measurement, mapping.program,
                                        analysis::lower_bound(graph, machine))));
  }
  if (options.json) {
    print_json(document);
  } else {
    std::vector<std::pair<std::string, std::string>> notes{
        {"alone",
         counted(compute_cycles, "cycle") + " for the same product with all operands on chip"}};
    if (measurement.result.wave_is_cut_short) notes.push_back(cut_wave_note(options.wave));
    print_text(report_text(
        measurement,
        {options.stats, options.report, options.wave.path, options.views.pipeline,
         options.views.transactions, options.views.trace, options.views.commands, options.outputs},
        notes));
  }
  return measurement.mismatches() == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_matmul_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<MatmulOptions>();
  CLI::App& command = *app.add_subcommand("matmul", "run one matrix product and check it");
  command.add_option("shape", options->shape, "C[MxN] = A[MxK] B[KxN], int8")
      ->type_name("MxNxK")
      ->required();
  add_machine_options(command, options->machine);
  add_strategy(command, options->machine);
  add_rtl(command, options->machine);
  command.add_flag("--bias", options->bias, "add a bias to every row of the product");
  command.add_flag("--int32", options->sums, "leave the sums as int32, not requantised");
  command.add_option("--weight-bits", options->weight_bits, "of B: 8, or 4 (array.split)")
      ->type_name("8|4");
  command.add_option("--activation-bits", options->activation_bits, "of A: 8, or 4 as the weights")
      ->type_name("8|4");
  add_functional(command, options->functional);
  command.add_option("--stats", options->stats, "write the statistics")->type_name("FILE.json");
  add_report(command, options->report);
  add_outputs(command, options->outputs);
  add_command_views(command, options->views);
  add_wave(command, options->wave);
  command.add_flag("--json", options->json, "print the statistics instead of tables");
  add_examples(command, {"systole matmul 64x64x256 --machine gemmini",
                         "systole matmul 512x512x512 -m tiny --set bus.width_bytes=32 --json"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/error.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/stream/report_stream.h"

namespace systole::testbench {
namespace {

struct LayerOptions {
  MachineOptions machine;
  std::size_t tokens = 128, width = 64, features = 64, heads = 1, hidden = 0;
  std::string activation = "gelu", stats, report, outputs, tensors;
  bool functional = true;
  bool json = false;
};

hw::stream::ActivationKind activation_of(const std::string& word) {
  if (word == "gelu") return hw::stream::ActivationKind::kGelu;
  if (word == "relu") return hw::stream::ActivationKind::kRelu;
  return hw::stream::ActivationKind::kIdentity;
}

void list_files(const LayerOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.writes("--stats", options.stats);
  files.writes("--report", options.report);
  files.writes("--outputs", options.outputs);
}

int run(const LayerOptions& options) {
  StreamReport report;
  report.machine = load_stream_machine(options.machine);
  report.request.shape = {options.tokens, options.width, options.features, options.hidden};
  report.request.heads = options.heads;
  report.request.activation = activation_of(options.activation);
  report.request.functional = options.functional;
  report.request.tensors = options.tensors;
  return run_on_streaming_core(report, {options.stats, options.report, options.outputs},
                               options.json);
}

}  // namespace

void add_layer_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<LayerOptions>();
  CLI::App& command = *app.add_subcommand("layer", "run an encoder's layer on a streaming core");
  add_machine_options(command, options->machine);
  const auto add = [&](const char* name, std::size_t& value, const char* help) {
    require_positive(*command.add_option(name, value, help)->type_name("N"));
  };
  add("--tokens", options->tokens, "rows of the input; default: 128");
  add("--d", options->width, "width of a row; default: 64");
  add("--dim", options->features, "features of Q, K and V in a head; default: 64");
  add("--heads", options->heads, "one after the other; default: 1");
  add("--ffn", options->hidden, "width of a feed-forward layer; default: none");
  command.add_option("--activation", options->activation, "between its products; default: gelu")
      ->type_name("identity|gelu|relu")
      ->check(CLI::IsMember({"identity", "gelu", "relu"}).description(""));
  add_functional(command, options->functional);
  command.add_option("--stats", options->stats, "write the statistics")->type_name("FILE.json");
  add_report(command, options->report);
  add_tensors(command, options->tensors, add_outputs(command, options->outputs));
  command.add_flag("--json", options->json, "print the statistics instead of tables");
  add_examples(command, {"systole layer -m ita --tokens 128 --d 192 --dim 64 --ffn 256",
                         "systole layer -m ita --tokens 512 --d 512 --heads 8 --json",
                         "systole layer -m ita --outputs layer.safetensors --tensors '.*scores'"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

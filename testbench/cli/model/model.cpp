#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/build/encoder_graph.h"
#include "model/build/operator_graph.h"
#include "model/build/text_graph.h"
#include "model/deeploy/deeploy_network.h"
#include "model/float/gpt.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/graph/describe_model.h"
#include "model/integer/integer_model.h"
#include "model/metadata/text_shape.h"
#include "model/model_files.h"
#include "model/network/network_counts.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/model/model_accuracy.h"
#include "testbench/common/text.h"
#include "testbench/network/network_export.h"
#include "testbench/network/networks.h"
#include "testbench/report/report_model.h"
#include "testbench/report/report_network.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

struct ModelOptions {
  std::string model, input, checkpoint;
  std::string machine, out, drawing;
  std::string values;  ///< of every node of a network of Deeploy
  SizeOptions size;
  bool accuracy = false, json = false;
};

model::IntegerVit load(const std::string& name) {
  return model::load_integer_vit(model::find_model(name));
}

model::ModelInfo describe(const NetworkSize& size) {
  hw::Machine machine;
  machine.host.operators = hw::HostOperators::kRouting;  // experts need one
  return model::describe_graph(seeded_graph(size, machine, false));
}

/// A text generator reads a whole context, with a score of every token of its vocabulary at each.
struct Generator {
  model::TextShape shape;
  std::uint64_t macs, bytes;
};

Generator describe_generator(const std::string& path) {
  const model::Gpt gpt = model::load_gpt(path);
  model::SeededOptions options;
  options.shape_only = true;
  const model::ModelInfo layers = model::describe_graph(
      model::make_seeded_encoder(gpt.name, gpt.shape.encoder, gpt.shape.positions, 1, options));
  return {gpt.shape,
          layers.macs +
              std::uint64_t{gpt.shape.positions} * gpt.shape.vocabulary * gpt.shape.encoder.width,
          describe_checkpoint(path).parameters * hw::kHalfBytes};
}

void list_models(bool json) {
  Table table("model | >tokens | >layers | >width | >MACs | >bytes");
  ordered_json document = ordered_json::array();
  for (const std::string& name : model::model_names()) {
    const model::IntegerVit vit = load(name);
    const model::ModelInfo info = model::describe_graph(model::make_vit_graph(vit));
    const std::uint64_t bytes = info.weight_bytes + info.parameter_bytes + info.table_bytes;
    table.add({name, std::to_string(vit.shape.tokens()), std::to_string(vit.encoder.shape.layers),
               std::to_string(vit.encoder.shape.width), grouped(info.macs), grouped(bytes)});
    document.push_back(
        {{"name", name}, {"macs", info.macs}, {"bytes", bytes}, {"source", vit.source}});
  }
  const std::vector<std::string> generators = model::gpt_names();
  for (const std::string& name : generators) {
    const std::string path = model::find_gpt_checkpoint(name);
    const Generator gpt = describe_generator(path);
    table.add({name, std::to_string(gpt.shape.positions), std::to_string(gpt.shape.encoder.layers),
               std::to_string(gpt.shape.encoder.width), grouped(gpt.macs), grouped(gpt.bytes)});
    document.push_back({{"name", name},
                        {"macs", gpt.macs},
                        {"bytes", gpt.bytes},
                        {"source", std::filesystem::path(path).filename().string()}});
  }
  for (const std::string& name : shape_names()) {
    const NetworkSize size = network_size(name, {});
    const model::ModelInfo info = describe(size);
    const std::uint64_t bytes = info.weight_bytes + info.parameter_bytes;
    table.add({size.name, size.resnet ? "-" : std::to_string(size.length),
               std::to_string(size.shape.layers),
               std::to_string(size.resnet ? size.resnet->width : size.shape.width),
               grouped(info.macs), grouped(bytes)});
    document.push_back(
        {{"name", size.name}, {"macs", info.macs}, {"bytes", bytes}, {"source", "seeded"}});
  }
  if (json) return print_json({{"models", document}});
  print_text(table.text() + "\n" +
             paragraph("The last " + std::to_string(shape_names().size()) +
                       " are shapes with seeded weights; their figures are "
                       "those of a prompt of that many tokens, or of a picture." +
                       (generators.empty() ? ""
                                           : fmt::format(" {} writes text in FP16 (systole "
                                                         "generate); its tokens are its context.",
                                                         fmt::join(generators, ", ")))) +
             "\n");
}

void show_text(const std::string& path, bool json) {
  const model::IntegerText text = model::load_integer_text(path);
  const model::ModelInfo info = model::describe_graph(
      model::make_text_graph(text, std::min(kDefaultTextLength, text.shape.positions)));
  if (json) return print_json(model_json(text, info));
  print_text(model_text(text, info));
}

void show_checkpoint(const std::string& path, bool json) {
  const CheckpointInfo info = describe_checkpoint(path);
  if (json) return print_json(checkpoint_json(info));
  print_text(checkpoint_text(info));
}

/// A network file, node by node.
void show_network(const ModelOptions& options, const model::NetworkFile& file) {
  SizeOptions others = options.size;
  if (model::has_open_tokens(file)) others.length.reset();
  require_no_size(options.model, others);
  const std::uint32_t usual = model::most_tokens(file).value_or(kDefaultTextLength);
  const std::int64_t tokens = options.size.length.value_or(std::min(kDefaultTextLength, usual));
  if (tokens < 1 || tokens > model::kMaxPositions) {
    throw hw::InputError(
        fmt::format("--length: found {}, expected 1 to {}", tokens, model::kMaxPositions));
  }
  const auto count = static_cast<std::uint32_t>(tokens);
  if (!options.drawing.empty()) draw_network(file, options.drawing);
  if (options.json) return print_json(network_json(file, count));
  print_text(network_text(file, count));
}

/// The network file of that path; nothing if it is another file.
std::optional<model::NetworkFile> network_file(const std::string& path) {
  const model::Safetensors file = model::Safetensors::open(path);
  if (!model::is_network_file(file)) return std::nullopt;
  return model::NetworkFile(file);
}

/// Computes a network of Deeploy and writes its inputs and the result of every node.
void write_values(const ModelOptions& options) {
  const model::DeeployNetwork network =
      model::DeeployNetwork::open(model::find_model(options.model));
  const model::Safetensors file = model::Safetensors::open(options.input);
  model::IntegerTensors inputs;
  for (const std::string& name : file.names()) {
    const model::TensorView& view = file.tensor(name);
    inputs[name] = {view.shape, file.as_int64(name)};
  }
  std::vector<model::TensorData> tensors;
  for (const auto& [name, tensor] : network.run(inputs)) {
    tensors.push_back(
        model::make_tensor(name, model::FileDtype::kI64, tensor.shape, tensor.values));
  }
  model::write_safetensors(options.values, tensors);
  print_text(fmt::format("{}: the results of {} nodes\n", hw::printable(options.values),
                         network.nodes().size()));
}

/// The file of a model that is no shape. Throws InputError if there is none.
std::string path_of(const std::string& model) {
  return model::names_gpt_checkpoint(model) ? model::find_gpt_checkpoint(model)
                                            : model::find_model(model);
}

void show(const ModelOptions& options) {
  if (!options.out.empty()) {
    const hw::Machine machine = load_machine(options.machine, {});
    export_network(options.model, options.size, machine, options.out);
    if (!options.drawing.empty()) {
      draw_network(model::NetworkFile(model::Safetensors::open(options.out)), options.drawing);
    }
    return print_text(hw::printable(options.out) + ": a network file\n");
  }
  if (is_shape_name(options.model)) {
    const NetworkSize size = network_size(options.model, options.size);
    if (options.json) return print_json(model_json(size, describe(size)));
    return print_text(model_text(size, describe(size)));
  }
  const std::string path = path_of(options.model);
  if (const auto file = network_file(path)) return show_network(options, *file);
  if (!options.drawing.empty()) {
    throw hw::InputError("--svg: " + hw::printable(options.model) +
                         " is no network file, expected one, or --out to make it");
  }
  require_no_size(options.model, options.size);
  const model::ModelKind kind = model::model_kind(path);
  if (kind == model::ModelKind::kIntegerText) return show_text(path, options.json);
  if (kind == model::ModelKind::kCheckpoint) return show_checkpoint(path, options.json);
  const model::IntegerVit vit = load(options.model);
  const model::ModelInfo info = model::describe_graph(model::make_vit_graph(vit));
  if (options.json) return print_json(model_json(vit, info));
  print_text(model_text(vit, info));
}

void list_files(const ModelOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine);
  if (!options.model.empty()) {
    files.reads_model("model", options.model,
                      model::names_gpt_checkpoint(options.model) ? model::find_gpt_checkpoint
                                                                 : model::find_model);
  }
  files.reads_pictures("--input", options.input);
  files.reads("--checkpoint", options.checkpoint);
  files.writes("--out", options.out);
  files.writes("--svg", options.drawing);
  files.writes("--values", options.values);
}

int run(const ModelOptions& options) {
  if (!options.out.empty() || !options.drawing.empty()) {
    if (options.model.empty() || options.accuracy) {
      throw hw::InputError("--out and --svg: expected a model, and no --accuracy");
    }
    if (!options.out.empty() && options.json) {
      throw hw::InputError("--out and --json: expected one of them");
    }
  }
  if (!options.machine.empty() && (options.out.empty() || !is_shape_name(options.model))) {
    // An unknown name may be meant for a shape's.
    if (!options.out.empty()) static_cast<void>(path_of(options.model));
    throw hw::InputError("--machine: the datapath of a shape's --out, expected both");
  }
  if (!options.values.empty()) {
    if (options.input.empty() || options.model.empty() || options.accuracy || options.json ||
        !options.out.empty() || !options.drawing.empty()) {
      throw hw::InputError(
          "--values: expected a network of Deeploy, --input with its inputs, and nothing else");
    }
    require_no_size(options.model, options.size);
    write_values(options);
    return kExitOk;
  }
  if (options.accuracy) {
    return show_accuracy({options.model, options.input, options.checkpoint, options.json});
  }
  if (!options.input.empty() || !options.checkpoint.empty()) {
    throw hw::InputError("--input and --checkpoint: only of use with --accuracy or --values");
  }
  if (options.model.empty() || options.accuracy) {
    require_no_size("a list of models", options.size);
  }
  if (options.model.empty()) {
    list_models(options.json);
  } else {
    show(options);
  }
  return kExitOk;
}

}  // namespace

void add_model_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App& command = *app.add_subcommand("model", "list models, describe and judge one");
  command.add_option("model", options->model, "model, checkpoint or shape; none: list")
      ->type_name("NAME|FILE");
  add_size_options(command, options->size);
  command.add_flag("--accuracy", options->accuracy, "measure fp32 and integer accuracy");
  command
      .add_option("-i,--input", options->input, "pictures (default: the digits), texts or values")
      ->type_name("FILE|DIR");
  command.add_option("--checkpoint", options->checkpoint, "fp32 model; default: beside the model")
      ->type_name("FILE");
  command.add_option("-o,--out", options->out, "write the model as a network file")
      ->type_name("FILE.safetensors");
  command.add_option("-m,--machine", options->machine, "whose datapath a shape gets with --out")
      ->type_name("NAME|FILE");
  command.add_option("--svg", options->drawing, "draw a network file, needs Graphviz's dot")
      ->type_name("FILE.svg");
  command.add_option("--values", options->values, "compute a network of Deeploy, node by node")
      ->type_name("FILE.safetensors");
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(
      command,
      {"systole model", "systole model vit17", "systole model kjv", "systole model gpt2-xl -l 1024",
       "systole model --accuracy", "systole model my.int8.safetensors --accuracy",
       "systole model vit17 --out vit17.safetensors",
       "systole model vit17.safetensors --svg vit17.svg",
       "systole model cct.safetensors -i in.safetensors --values out.safetensors"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench

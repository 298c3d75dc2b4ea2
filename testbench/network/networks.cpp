#include "testbench/network/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "base/error.h"
#include "base/installation.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_text.h"
#include "model/build/encoder_graph.h"
#include "model/build/host_operators.h"
#include "model/build/llama_graph.h"
#include "model/build/seq2seq_graph.h"
#include "model/build/text_graph.h"
#include "model/float/float_vit.h"
#include "model/graph/elements.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/seeded/seeded_chain.h"
#include "model/seeded/seeded_llama.h"
#include "model/seeded/seeded_resnet.h"
#include "testbench/network/network_mask.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

/// Layers with the seeded inputs of a shape of their size.
Network layers_network(const std::string& name, model::IntegerLayers layers,
                       const hw::Machine& machine, const std::string& mask) {
  check_datapath(name, machine, layers.encoder.datapath);
  if (!mask.empty()) set_keep(mask, layers.length, layers.encoder);
  NetworkSize size;
  size.name = layers.name;
  size.shape = layers.encoder.shape;
  size.kind = size.shape.causal ? model::NetworkKind::kDecoder : model::NetworkKind::kEncoder;
  size.length = size.positions = layers.length;
  require_room(size, machine);
  Network network;
  network.name = layers.name;
  network.size = size;
  network.datapath = layers.encoder.datapath;
  network.graph = model::for_machine(
      model::make_encoder_graph(layers.encoder, layers.length, layers.name, layers.embedding_scale),
      machine);
  return network;
}

/// Any operators, in their order. `name`: for messages.
Network operator_network(const std::string& name, model::OperatorNetwork operators,
                         const hw::Machine& machine) {
  check_datapath(name, machine, operators.datapath);
  Network network;
  network.name = operators.name;
  network.datapath = operators.datapath;
  network.pictures = std::move(operators.pictures);
  const bool windows = std::any_of(operators.graph.nodes.begin(), operators.graph.nodes.end(),
                                   [](const model::Node& node) { return node.window.has_value(); });
  try {
    // Residuals of pictures are added as Gemmini's library does, on the accelerator.
    network.graph = windows ? std::move(operators.graph)
                            : model::for_machine(std::move(operators.graph), machine);
  } catch (const std::invalid_argument& error) {
    throw hw::InputError(fmt::format("{}: on {}, whose host computes: {}", hw::printable(name),
                                     machine.name, error.what()));
  }
  return network;
}

}  // namespace

/// A wider unit computes a narrower model as well; modes and roundings must be the same.
void check_datapath(const std::string& model, const hw::Machine& machine,
                    const hw::Machine::Datapath& needed) {
  const hw::Machine::Datapath& has = machine.datapath;
  const auto require = [&](bool holds, std::string_view path) {
    if (holds) return;
    hw::Machine wanted = machine;
    wanted.datapath = needed;
    const hw::MachineKey& key = *hw::find_machine_key(path);
    throw hw::InputError(fmt::format(
        "{}: was quantised for {} = {}, but machine {} has {}; quantise it for this machine",
        hw::printable(model), path, hw::value_text(key, wanted), machine.name,
        hw::value_text(key, machine)));
  };
  require(needed.multiplier_bits <= has.multiplier_bits, "datapath.multiplier_bits");
  require(needed.rounding == has.rounding, "datapath.rounding");
  require(needed.residual_bits <= has.residual_bits, "datapath.residual_bits");
  require(needed.softmax == has.softmax, "datapath.softmax");
  require(needed.softmax_bits <= has.softmax_bits, "datapath.softmax_bits");
}

Network read_network(const std::string& name_or_path, const hw::Machine& machine,
                     const std::string& mask) {
  const std::string path = model::find_model(name_or_path);
  const model::ModelKind kind = model::model_kind(path);
  if (kind == model::ModelKind::kIntegerLayers) {
    return layers_network(name_or_path, model::load_integer_layers(path), machine, mask);
  }
  if (kind == model::ModelKind::kIntegerOperators) {
    if (!mask.empty()) {
      throw hw::InputError("--mask: " + hw::printable(name_or_path) +
                           " has operators without a mask, expected Transformer blocks");
    }
    return operator_network(
        name_or_path,
        model::make_operator_network(model::NetworkFile(model::Safetensors::open(path))), machine);
  }
  Network network;
  if (kind == model::ModelKind::kIntegerSeq2Seq) {
    if (!mask.empty()) {
      throw hw::InputError("--mask: " + hw::printable(name_or_path) +
                           " is an encoder-decoder, expected a network of one part");
    }
    network.seq2seq = model::load_integer_seq2seq(path);
    check_datapath(name_or_path, machine, network.seq2seq->encoder.encoder.datapath);
    network.name = network.seq2seq->name;
    return network;
  }
  if (kind == model::ModelKind::kIntegerLlama) {
    if (!mask.empty()) {
      throw hw::InputError("--mask: " + hw::printable(name_or_path) +
                           " is a Llama, expected a network without key/value heads");
    }
    network.llama = model::load_integer_llama(path);
    check_datapath(name_or_path, machine, network.llama->datapath);
    network.name = network.llama->name;
    return network;
  }
  if (kind == model::ModelKind::kIntegerText) {
    network.text = model::load_integer_text(path);
    check_datapath(name_or_path, machine, network.text->encoder.datapath);
    network.name = network.text->name;
    return network;
  }
  network.vit = model::load_integer_vit(path);
  check_datapath(name_or_path, machine, network.vit->encoder.datapath);
  network.name = network.vit->name;
  if (!mask.empty()) set_keep(mask, network.vit->shape.tokens(), network.vit->encoder);
  network.graph = model::for_machine(model::make_vit_graph(*network.vit), machine);
  return network;
}

Network chain_network(const std::string& path, const hw::Machine& machine) {
  return operator_network(path, model::read_chain(path, kWeightSeed, machine.datapath), machine);
}

void set_text_length(Network& network, std::uint32_t length, const hw::Machine& machine,
                     const std::string& mask) {
  if (!mask.empty()) set_keep(mask, length, network.text->encoder);
  network.graph = model::for_machine(model::make_text_graph(*network.text, length), machine);
}

void set_llama_length(Network& network, std::uint32_t length, const hw::Machine& machine,
                      const std::vector<std::int32_t>& ids) {
  const model::IntegerLlama& llama = *network.llama;
  model::Graph graph = model::make_llama_graph(llama, length);
  if (llama.shape.experts != 0) {
    MakeEmbedding embedding;
    if (!ids.empty()) embedding = [&] { return model::embed_tokens(llama, ids); };
    const model::Routing routing = routing_for(network.name, llama.shape, length, std::nullopt,
                                               machine, std::move(graph), embedding);
    graph = model::make_llama_graph(llama, length, 1, routing);
  }
  network.graph = model::for_machine(std::move(graph), machine);
}

void set_pair_length(Network& network, std::uint32_t source, std::uint32_t target,
                     const hw::Machine& machine) {
  network.graph =
      model::for_machine(model::make_seq2seq_graph(*network.seq2seq, source, target), machine);
}

std::uint32_t pair_positions(const model::IntegerSeq2Seq& network) {
  return std::min(network.encoder.shape.positions, network.decoder.shape.positions);
}

Network load_network(const std::string& name_or_path, const hw::Machine& machine) {
  return load_network(name_or_path, SizeOptions{}, machine);
}

void require_room(const NetworkSize& size, const hw::Machine& machine) {
  const double available = std::ldexp(machine.dram.mib, 20);
  const double needed = size.weight_bytes(machine);
  if (needed > available) {
    const double mib = std::ceil(std::ldexp(needed, -20));
    throw hw::InputError(fmt::format(
        "dram.mib = {}: {} needs {:.0f} MiB for its weights alone{}", machine.dram.mib, size.name,
        mib, hw::memory_advice("dram.mib", static_cast<std::uint64_t>(mib))));
  }
}

model::IntegerLlama seeded_llama(const NetworkSize& size, const hw::Machine& machine,
                                 bool with_weights) {
  const bool int4 = size.int4(machine);
  model::IntegerLlama llama = model::make_seeded_llama(
      size.name, *size.llama, size.tokens(), kWeightSeed, machine.datapath, with_weights, int4);
  const hw::WeightFormat format = size.format(machine);
  if (format != hw::WeightFormat::kInt8) model::group_weights(llama, format, size.name);
  return llama;
}

model::Routing routing_for(const std::string& name, const model::LlamaShape& shape,
                           std::uint32_t tokens, const std::optional<model::RoutingKind>& kind,
                           const hw::Machine& machine, model::Graph all,
                           const MakeEmbedding& embedding) {
  if (machine.host.operators != hw::HostOperators::kRouting) {
    throw hw::InputError(hw::printable(name) + ": experts, expected host.operators = \"routing\"");
  }
  if (!embedding) {
    return model::seeded_routing(shape, tokens, kind.value_or(model::RoutingKind::kUniform),
                                 kWeightSeed);
  }
  if (kind) throw hw::InputError("--routing: the values decide it, expected --functional off");
  return model::find_routing(std::move(all), shape, embedding());
}

model::Graph seeded_graph(const NetworkSize& size, const hw::Machine& machine, bool with_weights,
                          const std::string& mask) {
  if (size.resnet) {
    if (!mask.empty()) throw hw::InputError("--mask: " + size.name + " has no attention");
    return model::make_seeded_resnet(size.name, *size.resnet, kWeightSeed, machine.datapath,
                                     with_weights);
  }
  const std::vector<std::vector<std::uint8_t>> keep =
      mask.empty() ? std::vector<std::vector<std::uint8_t>>{}
                   : load_keep(mask, size.shape, size.length);
  if (size.llama) {
    const model::IntegerLlama llama = seeded_llama(size, machine, with_weights);
    model::Graph graph = model::make_llama_graph(llama, size.length, size.batch);
    if (llama.shape.experts == 0) return graph;
    MakeEmbedding embedding;
    if (with_weights) {
      embedding = [&] {
        return model::seeded_embedding(size.shape, size.length * size.batch, kWeightSeed + 1,
                                       machine.datapath);
      };
    }
    const model::Routing routing = routing_for(size.name, llama.shape, size.tokens_at_once(),
                                               size.routing, machine, std::move(graph), embedding);
    return model::make_llama_graph(llama, size.length, size.batch, routing);
  }
  model::SeededOptions options;
  options.keep = keep;
  options.datapath = machine.datapath;
  options.shape_only = !with_weights;
  options.batch = size.batch;
  options.int4 = size.int4(machine);
  return model::make_seeded_encoder(size.name, size.shape, size.length, kWeightSeed, options);
}

Network seeded_network(const NetworkSize& size, const hw::Machine& machine, bool with_weights,
                       const std::string& mask) {
  require_room(size, machine);
  Network network;
  network.name = size.name;
  network.size = size;
  network.datapath = machine.datapath;
  network.graph = seeded_graph(size, machine, with_weights, mask);
  // Residuals of pictures are added as Gemmini's library does, on the accelerator.
  if (!size.resnet) network.graph = model::for_machine(std::move(network.graph), machine);
  return network;
}

Network load_network(const std::string& name_or_path, const SizeOptions& options,
                     const hw::Machine& machine, bool with_weights) {
  if (is_shape_name(name_or_path)) {
    return seeded_network(network_size(name_or_path, options), machine, with_weights);
  }
  Network network = read_network(name_or_path, machine);
  SizeOptions rest = options;
  if (network.text) {
    const std::uint32_t positions = network.text->shape.positions;
    set_text_length(network, text_length(network.name, positions, options.length), machine);
    rest.length.reset();
  }
  if (network.llama) {
    const std::uint32_t positions = network.llama->shape.positions;
    set_llama_length(network, text_length(network.name, positions, options.length), machine);
    rest.length.reset();
  }
  if (network.seq2seq) {
    const std::uint32_t length =
        text_length(network.name, pair_positions(*network.seq2seq), options.length);
    set_pair_length(network, length, length, machine);
    rest.length.reset();
  }
  require_no_size(name_or_path, rest);
  return network;
}

std::vector<std::uint8_t> embedding_bytes(const std::vector<std::int32_t>& values, hw::DType type) {
  std::vector<std::uint8_t> bytes(values.size() * hw::bytes_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!model::store_element(bytes.data(), i, type, values[i])) {
      throw std::logic_error("embedding: a value does not fit its type");
    }
  }
  return bytes;
}

std::vector<std::vector<std::uint8_t>> seeded_inputs(const Network& network, std::size_t count,
                                                     bool with_values) {
  const model::Tensor& input = network.graph.tensors[input_tensor(network.graph)];
  const hw::DType type = input.type;
  std::vector<std::vector<std::uint8_t>> inputs;
  if (network.size && network.size->llama && network.size->llama->experts != 0 && count != 1) {
    throw hw::InputError("--inferences: the program of experts is that of one input, expected 1");
  }
  if (!with_values) {
    inputs.assign(count, std::vector<std::uint8_t>(input.bytes()));
    return inputs;
  }
  if (!network.size) {
    for (std::size_t i = 0; i < count; ++i) {
      inputs.push_back(model::seeded_codes(input, kWeightSeed + 1 + i, network.datapath));
    }
    return inputs;
  }
  const NetworkSize& size = *network.size;
  for (std::size_t i = 0; i < count; ++i) {
    if (size.resnet) {
      inputs.push_back(
          embedding_bytes(model::seeded_picture(*size.resnet, kWeightSeed + 1 + i), type));
      continue;
    }
    inputs.push_back(embedding_bytes(model::seeded_embedding(size.shape, size.length * size.batch,
                                                             kWeightSeed + 1 + i, network.datapath),
                                     type));
  }
  return inputs;
}

std::vector<std::uint8_t> text_input(const Network& network, const model::TokenText& text) {
  const hw::DType type = network.graph.tensors[input_tensor(network.graph)].type;
  return embedding_bytes(model::embed_tokens(network.text.value(), text.ids, 0, text.types), type);
}

std::string data_file(const std::string& name) { return hw::data_directory() + "/" + name; }

std::string default_data() { return data_file("data/digits.safetensors"); }

model::PictureFormat picture_format(const Network& network) {
  return network.pictures ? network.pictures->format : network.vit.value().shape.pictures();
}

std::vector<std::vector<std::uint8_t>> network_inputs(const Network& network,
                                                      const model::Dataset& data,
                                                      std::size_t limit) {
  const std::size_t count = limit == 0 ? data.count : std::min(limit, data.count);
  std::vector<std::vector<std::uint8_t>> inputs(count);
  if (network.pictures) {
    for (std::size_t i = 0; i < count; ++i) inputs[i] = network.pictures->bytes(data.image(i));
    return inputs;
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::int32_t sample : model::patches_of(data, i, network.vit->shape)) {
      inputs[i].push_back(static_cast<std::uint8_t>(sample));  // modulo 256: two's complement
    }
  }
  return inputs;
}

bool classifies(const Network& network) {
  return network.vit || network.pictures || (network.text && network.text->head);
}

std::int32_t class_of(const model::Graph& graph, const std::vector<std::uint8_t>& logits) {
  const hw::DType type = graph.tensors[output_tensor(graph)].type;
  return static_cast<std::int32_t>(model::argmax(widen(logits, type)));
}

double accuracy_of(const model::Graph& graph, const std::vector<std::uint32_t>& labels,
                   const std::vector<std::vector<std::uint8_t>>& outputs) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (static_cast<std::uint32_t>(class_of(graph, outputs[i])) == labels.at(i)) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(outputs.size());
}

}  // namespace systole::testbench

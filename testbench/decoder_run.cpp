#include "testbench/decoder_run.h"

#include "model/decode_graph.h"
#include "model/graph_builder.h"
#include "model/shapes.h"
#include "testbench/networks.h"
#include "testbench/tensors.h"

namespace systole::testbench {
namespace {

std::vector<std::int32_t> embeddings(const NetworkSize& size, const hw::Machine& machine) {
  return model::seeded_embedding(size.shape, size.tokens(), kWeightSeed + 1, machine.datapath);
}

/// Of the last step.
model::Graph make_graph(const NetworkSize& size, const hw::Machine& machine, bool with_weights) {
  require_room(size, machine);
  model::SeededOptions options;
  options.datapath = machine.datapath;
  options.shape_only = !with_weights;
  const model::IntegerEncoder layers =
      model::make_seeded_layers(size.shape, size.tokens(), kWeightSeed, options);
  model::Graph graph =
      model::make_decode_graph(layers, size.tokens(), size.name,
                               model::seeded_embedding_scale(size.shape, machine.datapath));
  if (!with_weights || size.past == 0) return graph;
  std::vector<std::int32_t> past = embeddings(size, machine);
  past.resize(std::size_t{size.past} * size.shape.width);
  model::fill_caches(graph, layers, size.past, past);
  return graph;
}

std::vector<std::vector<std::uint8_t>> make_inputs(const NetworkSize& size,
                                                   const hw::Machine& machine, hw::DType type) {
  const std::vector<std::uint8_t> bytes = embedding_bytes(embeddings(size, machine), type);
  const std::size_t row = size.shape.width * hw::bytes_of(type);
  std::vector<std::vector<std::uint8_t>> inputs;
  for (std::size_t token = size.past; token < size.tokens(); ++token) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(token * row);
    inputs.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(row));
  }
  return inputs;
}

}  // namespace

DecoderRun::DecoderRun(const NetworkSize& size, const hw::Machine& machine, bool with_weights)
    : size_(size),
      graph_(make_graph(size, machine, with_weights)),
      inputs_(make_inputs(size, machine, graph_.tensors[input_tensor(graph_)].type)),
      mapper_(graph_, machine) {
  for (std::uint32_t token = size_.past; token < size_.tokens(); ++token) {
    model::move_to_token(graph_, token);
    macs_ += model::count_macs(graph_);
  }
  model::move_to_token(graph_, size_.past);
  first_ = mapper_.map(graph_, true);
}

const mapper::Mapping& DecoderRun::step(std::size_t index) {
  model::move_to_token(graph_, size_.past + static_cast<std::uint32_t>(index));
  current_ = mapper_.map(graph_, false);
  return current_;
}

}  // namespace systole::testbench

#include "testbench/network/decoder_run.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "model/build/decode_graph.h"
#include "model/build/host_operators.h"
#include "model/build/text_graph.h"
#include "model/graph/graph_builder.h"
#include "model/seeded/shapes.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

/// Cuts what the host writes for tokens into that of the cached ones and that of each step.
void set_inputs(DecoderWork& work, const model::IntegerEncoder& layers,
                const std::vector<std::int32_t>& embedding, const hw::Machine& machine,
                bool with_values) {
  const std::size_t width = layers.shape.width;
  const auto cached = embedding.begin() + static_cast<std::ptrdiff_t>(work.past * width);
  if (with_values && work.past != 0) {
    model::fill_caches(work.graph, layers, work.past, {embedding.begin(), cached}, machine);
  }
  const hw::DType type = work.graph.tensors[input_tensor(work.graph)].type;
  for (auto row = cached; row != embedding.end(); row += static_cast<std::ptrdiff_t>(width)) {
    work.inputs.push_back(embedding_bytes({row, row + static_cast<std::ptrdiff_t>(width)}, type));
  }
}

}  // namespace

DecoderWork seeded_work(const NetworkSize& size, const hw::Machine& machine, bool with_weights) {
  require_room(size, machine);
  model::SeededOptions options;
  options.datapath = machine.datapath;
  options.shape_only = !with_weights;
  const model::IntegerEncoder layers =
      model::make_seeded_layers(size.shape, size.tokens(), kWeightSeed, options);
  DecoderWork work;
  work.graph = model::for_machine(
      model::make_decode_graph(layers, size.tokens(), size.name,
                               model::seeded_embedding_scale(size.shape, machine.datapath)),
      machine);
  work.past = size.past;
  set_inputs(work, layers,
             model::seeded_embedding(size.shape, size.tokens(), kWeightSeed + 1, machine.datapath),
             machine, with_weights);
  return work;
}

DecoderWork text_work(const model::IntegerText& text, const std::vector<std::int32_t>& ids,
                      std::uint32_t past, const hw::Machine& machine) {
  const model::EncoderShape& shape = text.shape.encoder;
  if (!shape.causal || shape.post_norm) {
    throw hw::InputError("--decode: " + text.name + " is no pre-norm decoder, expected a GPT-2");
  }
  if (past >= ids.size()) {
    throw hw::InputError(fmt::format("--past: found {}, but the text has {} tokens, expected less",
                                     past, ids.size()));
  }
  DecoderWork work;
  work.graph = model::for_machine(
      model::make_text_decode_graph(text, static_cast<std::uint32_t>(ids.size())), machine);
  work.past = past;
  set_inputs(work, text.encoder, model::embed_tokens(text, ids), machine, true);
  return work;
}

SteppedRun::SteppedRun(model::Graph graph, std::vector<std::vector<std::uint8_t>> inputs, Move move,
                       const hw::Machine& machine)
    : graph_(std::move(graph)),
      inputs_(std::move(inputs)),
      move_(std::move(move)),
      mapper_(graph_, machine) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    move_(graph_, i);
    macs_ += model::count_macs(graph_);
  }
  move_(graph_, 0);
  first_ = mapper_.map(graph_, true);
}

const mapper::Mapping& SteppedRun::step(std::size_t inference) {
  move_(graph_, inference);
  current_ = mapper_.map(graph_, false);
  return current_;
}

DecoderRun::DecoderRun(DecoderWork work, const hw::Machine& machine)
    : SteppedRun(
          std::move(work.graph), std::move(work.inputs),
          [past = work.past](model::Graph& graph, std::size_t step) {
            model::move_to_token(graph, past + static_cast<std::uint32_t>(step));
          },
          machine),
      past_(work.past) {}

}  // namespace systole::testbench

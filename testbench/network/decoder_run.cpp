#include "testbench/network/decoder_run.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "model/build/decode_graph.h"
#include "model/build/host_operators.h"
#include "model/build/llama_graph.h"
#include "model/build/seq2seq_graph.h"
#include "model/build/text_graph.h"
#include "model/graph/graph_builder.h"
#include "model/seeded/seeded_llama.h"
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

/// Token `first` and those after it, `count` of each sequence of `tokens`, by sequence.
std::vector<std::int32_t> tokens_of(const std::vector<std::int32_t>& embedding,
                                    const NetworkSize& size, std::uint32_t first,
                                    std::uint32_t count) {
  std::vector<std::int32_t> rows;
  const std::size_t width = size.shape.width;
  for (std::size_t s = 0; s < size.batch; ++s) {
    const auto from =
        embedding.begin() + static_cast<std::ptrdiff_t>((s * size.tokens() + first) * width);
    rows.insert(rows.end(), from, from + static_cast<std::ptrdiff_t>(count * width));
  }
  return rows;
}

/// The step of a Llama, as moved from token to token.
DecoderWork llama_steps(const model::IntegerLlama& llama, std::uint32_t positions,
                        std::uint32_t past, std::uint32_t sequences, const hw::Machine& machine,
                        const model::Routing& routing = {}) {
  DecoderWork work;
  work.graph = model::for_machine(
      model::make_llama_decode_graph(llama, positions, sequences, routing), machine);
  work.past = past;
  work.move = [shape = llama.shape](model::Graph& graph, std::uint32_t token) {
    model::move_llama_to_token(graph, shape, token);
  };
  return work;
}

void require_past(std::uint32_t past, std::size_t tokens) {
  if (past < tokens) return;
  throw hw::InputError(
      fmt::format("--past: found {}, but the text has {} tokens, expected less", past, tokens));
}

/// A step of `sequences` tokens, by default of a file's network.
struct Step {
  std::string name;
  std::uint32_t positions, past, sequences = 1;
  std::optional<model::RoutingKind> routing = {};
};

/// Leaves the step of experts those that its tokens go to; by the values of `embedding`, if there
/// are values. Caches keep what they have.
void route(DecoderWork& work, const model::IntegerLlama& llama, const Step& step,
           const hw::Machine& machine, const MakeEmbedding& embedding) {
  const model::Routing routing = routing_for(step.name, llama.shape, step.sequences, step.routing,
                                             machine, work.graph, embedding);
  DecoderWork routed =
      llama_steps(llama, step.positions, step.past, step.sequences, machine, routing);
  for (model::Tensor& tensor : routed.graph.tensors) {
    if (tensor.kind != model::Tensor::Kind::kState) continue;
    tensor.data = work.graph.tensors[model::find_tensor(work.graph, tensor.name)].data;
  }
  work = std::move(routed);
}

DecoderWork seeded_llama_work(const NetworkSize& size, const hw::Machine& machine,
                              bool with_weights) {
  const model::IntegerLlama llama = seeded_llama(size, machine, with_weights);
  if (llama.shape.experts != 0 && size.length != 1) {
    throw hw::InputError("--length: the program of experts is that of one step, expected 1");
  }
  const Step step{size.name, size.tokens(), size.past, size.batch, size.routing};
  DecoderWork work = llama_steps(llama, size.tokens(), size.past, size.batch, machine);
  const model::Tensor& input = work.graph.tensors[input_tensor(work.graph)];
  if (!with_weights) {
    if (llama.shape.experts != 0) route(work, llama, step, machine, {});
    work.inputs.assign(size.length, std::vector<std::uint8_t>(input.bytes(), 0));
    return work;
  }
  const std::vector<std::int32_t> embedding = model::seeded_embedding(
      size.shape, size.tokens() * size.batch, kWeightSeed + 1, machine.datapath);
  if (size.past != 0) {
    model::fill_llama_caches(work.graph, llama, size.past,
                             tokens_of(embedding, size, 0, size.past));
  }
  if (llama.shape.experts != 0) {
    route(work, llama, step, machine, [&] { return tokens_of(embedding, size, size.past, 1); });
  }
  for (std::uint32_t token = size.past; token < size.tokens(); ++token) {
    work.inputs.push_back(embedding_bytes(tokens_of(embedding, size, token, 1), input.type));
  }
  return work;
}

}  // namespace

DecoderWork seeded_work(const NetworkSize& size, const hw::Machine& machine, bool with_weights) {
  require_room(size, machine);
  if (size.llama) return seeded_llama_work(size, machine, with_weights);
  model::SeededOptions options;
  options.datapath = machine.datapath;
  options.shape_only = !with_weights;
  options.int4 = size.int4(machine);
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
  require_past(past, ids.size());
  DecoderWork work;
  work.graph = model::for_machine(
      model::make_text_decode_graph(text, static_cast<std::uint32_t>(ids.size())), machine);
  work.past = past;
  set_inputs(work, text.encoder, model::embed_tokens(text, ids), machine, true);
  return work;
}

DecoderWork llama_work(const model::IntegerLlama& llama, const std::vector<std::int32_t>& ids,
                       std::uint32_t past, const hw::Machine& machine) {
  require_past(past, ids.size());
  DecoderWork work = llama_steps(llama, static_cast<std::uint32_t>(ids.size()), past, 1, machine);
  const auto first = ids.begin() + static_cast<std::ptrdiff_t>(past);
  if (past != 0) {
    model::fill_llama_caches(work.graph, llama, past,
                             model::embed_tokens(llama, {ids.begin(), first}));
  }
  if (llama.shape.experts != 0) {
    if (past + 1 != ids.size()) {
      throw hw::InputError(fmt::format(
          "--past: found {} of {} tokens, but the program of experts is that of one step, "
          "expected one token less than all",
          past, ids.size()));
    }
    route(work, llama, {llama.name, static_cast<std::uint32_t>(ids.size()), past}, machine,
          [&] { return model::embed_tokens(llama, {*first}); });
  }
  const hw::DType type = work.graph.tensors[input_tensor(work.graph)].type;
  for (auto id = first; id != ids.end(); ++id) {
    work.inputs.push_back(embedding_bytes(model::embed_tokens(llama, {*id}), type));
  }
  return work;
}

DecoderWork seq2seq_work(const model::IntegerSeq2Seq& network, std::uint32_t positions,
                         std::uint32_t beams, std::uint32_t source,
                         std::vector<std::uint8_t> memory, const hw::Machine& machine) {
  DecoderWork work;
  work.graph = model::for_machine(
      model::make_seq2seq_decode_graph(network, positions, source, beams), machine);
  work.graph.tensors[model::find_tensor(work.graph, model::kMemoryTensor)].data = std::move(memory);
  work.inputs.resize(positions);
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
  // Taken out whatever follows: what was mapped in vain, or failed to, must not come back later.
  std::future<mapper::Mapping> begun;
  if (ahead_) begun = std::move(ahead_->mapping);
  if (begun.valid()) begun.wait();
  if (!own_nodes_.empty()) graph_.nodes = std::exchange(own_nodes_, {});
  move_(graph_, inference);
  if (begun.valid() && ahead_->inference == inference) {
    mapper::Mapping mapping = begun.get();
    ahead_->room = std::exchange(current_, std::move(mapping));
  } else {
    current_ = mapper_.map(graph_, false, std::move(current_));
  }
  if (ahead_ && inference + 1 < inputs_.size()) begin_ahead(inference + 1);
  return current_;
}

void SteppedRun::begin_ahead(std::size_t inference) {
  ahead_->inference = inference;
  ahead_->mapping = std::async(std::launch::async, [this, inference] {
    move_(ahead_->graph, inference);
    return mapper_.map(ahead_->graph, false, std::move(ahead_->room));
  });
}

const mapper::Mapping& SteppedRun::between(std::vector<model::Node> nodes) {
  if (ahead_ && ahead_->mapping.valid()) ahead_->mapping.wait();
  if (own_nodes_.empty()) own_nodes_ = std::move(graph_.nodes);
  graph_.nodes = std::move(nodes);
  current_ = mapper_.map_between(graph_);
  return current_;
}

DecoderRun::DecoderRun(DecoderWork work, const hw::Machine& machine)
    : SteppedRun(
          std::move(work.graph), std::move(work.inputs),
          [past = work.past, move = work.move](model::Graph& graph, std::size_t step) {
            move(graph, past + static_cast<std::uint32_t>(step));
          },
          machine),
      past_(work.past) {}

}  // namespace systole::testbench

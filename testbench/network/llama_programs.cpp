#include "testbench/network/llama_programs.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "model/build/host_operators.h"
#include "model/build/llama_graph.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

using model::Tensor;
using model::TensorId;

void put_first(hw::MemoryImage pieces, hw::MemoryImage& image) {
  image.insert(image.begin(), std::make_move_iterator(pieces.begin()),
               std::make_move_iterator(pieces.end()));
}

/// Takes out what is no program and begins before `end`.
void take_out_data(std::uint64_t end, hw::MemoryImage& image) {
  image.erase(std::remove_if(image.begin(), image.end(),
                             [&](const hw::MemoryPiece& piece) {
                               return !piece.is_program && piece.address < end;
                             }),
              image.end());
}

}  // namespace

std::size_t LlamaPrograms::add_steps(const model::IntegerLlama& llama, std::uint32_t positions,
                                     const std::string& network) {
  Program program;
  program.shape = llama.shape;
  return add(std::move(program), model::make_llama_decode_graph(llama, positions), network, network,
             positions, {0, 1});
}

std::optional<std::size_t> LlamaPrograms::add_chunks(const model::IntegerLlama& llama,
                                                     std::uint32_t positions, std::uint32_t chunk,
                                                     bool every, const std::string& network,
                                                     const std::string& program) {
  Program made;
  made.shape = llama.shape;
  made.chunk = chunk;
  const std::size_t tensors = graph_.tensors.size(), programs = programs_.size(), active = active_;
  try {
    return add(std::move(made), model::make_llama_chunk_graph(llama, positions, chunk, every),
               network, network + program, positions, {0, chunk});
  } catch (const hw::InputError&) {
    if (active < programs) activate(active);
    programs_.resize(programs);
    graph_.tensors.resize(tensors);
    active_ = active;
    return std::nullopt;
  }
}

std::size_t LlamaPrograms::add(Program program, model::Graph graph, const std::string& network,
                               const std::string& prefix, std::uint32_t positions,
                               TokenRange first) {
  if (graph_.name.empty()) graph_.name = graph.name;
  take_over(program, model::for_machine(std::move(graph), machine_), network, prefix);
  programs_.push_back(std::move(program));
  const std::size_t number = programs_.size() - 1;
  activate(number);
  Program& added = programs_.back();
  move({positions - first.count, first.count});  // the largest
  if (number == 0) {
    added.mapper.emplace(graph_, machine_);
  } else {
    added.mapper.emplace(graph_, machine_, *programs_[number - 1].mapper);
  }
  move(first);
  mapper::Mapping mapping = added.mapper->map(graph_, true);
  added.constants_begin = mapping.constants_begin;
  added.constants_end = mapping.program_address;
  // Weights and parameters come with the first map() of the program.
  for (hw::MemoryPiece& piece : mapping.image) {
    if (piece.address < added.constants_begin) tensors_.push_back(std::move(piece));
  }
  for (std::size_t i = 0; i < number; ++i) {
    programs_[i].mapper->place_programs(added.mapper->programs());
  }
  return number;
}

void LlamaPrograms::take_over(Program& program, model::Graph graph, const std::string& network,
                              const std::string& prefix) {
  std::map<std::string, TensorId> known;
  for (std::size_t id = 0; id < graph_.tensors.size(); ++id) {
    known[graph_.tensors[id].name] = static_cast<TensorId>(id);
  }
  std::vector<TensorId> places;
  for (Tensor& tensor : graph.tensors) {
    const bool stays =
        tensor.kind == Tensor::Kind::kConstant || tensor.kind == Tensor::Kind::kState;
    const std::string name = (stays ? network : prefix) + tensor.name;
    const auto found = known.find(name);
    if (stays && found != known.end()) {
      places.push_back(found->second);
      continue;
    }
    places.push_back(static_cast<TensorId>(graph_.tensors.size()));
    if (tensor.kind == Tensor::Kind::kInput) program.input = places.back();
    if (tensor.kind == Tensor::Kind::kOutput) program.output = places.back();
    if (!stays) tensor.kind = Tensor::Kind::kActivation;  // until it is selected
    tensor.name = name;
    graph_.tensors.push_back(std::move(tensor));
  }
  const auto move = [&](TensorId& id) {
    if (id != model::kNoTensor) id = places.at(id);
  };
  for (model::Node& node : graph.nodes) {
    node.name.insert(0, prefix);
    move(node.in.tensor);
    move(node.out.tensor);
    if (model::Product* const product = node.product()) move(product->b.tensor);
    if (model::HostUse* const host = node.host()) move(host->tensor.tensor);
    if (model::StageUse* const stage = node.stage()) {
      move(stage->tensor.tensor);
      move(stage->statistics);
    }
  }
  share_parameters(graph.nodes);
  program.nodes = std::move(graph.nodes);
}

void LlamaPrograms::share_parameters(std::vector<model::Node>& nodes) const {
  using Words = hw::SharedVector<std::int32_t>;
  const auto hash = [](const Words& words) {
    return hw::hash_of(reinterpret_cast<const std::uint8_t*>(words.data()),
                       words.size() * sizeof(std::int32_t));
  };
  std::unordered_multimap<std::uint64_t, Words> known;
  const auto learn = [&](const std::vector<model::Node>& of) {
    for (const model::Node& node : of) {
      if (node.stage() == nullptr || node.stage()->parameters.empty()) continue;
      known.emplace(hash(node.stage()->parameters), node.stage()->parameters);
    }
  };
  learn(graph_.nodes);
  for (const Program& program : programs_) learn(program.nodes);
  for (model::Node& node : nodes) {
    if (node.stage() == nullptr || node.stage()->parameters.empty()) continue;
    Words& words = node.stage()->parameters;
    const auto [first, last] = known.equal_range(hash(words));
    const auto same =
        std::find_if(first, last, [&](const auto& each) { return each.second == words; });
    if (same != last) words = same->second;
  }
}

void LlamaPrograms::activate(std::size_t program) {
  if (program == active_) return;
  const auto turn = [&](Program& of, Tensor::Kind input, Tensor::Kind output) {
    std::swap(graph_.nodes, of.nodes);
    graph_.tensors[of.input].kind = input;
    graph_.tensors[of.output].kind = output;
  };
  if (active_ < programs_.size()) {
    turn(programs_[active_], Tensor::Kind::kActivation, Tensor::Kind::kActivation);
  }
  turn(programs_.at(program), Tensor::Kind::kInput, Tensor::Kind::kOutput);
  active_ = program;
}

void LlamaPrograms::move(TokenRange tokens) {
  const Program& program = programs_.at(active_);
  if (program.chunk != 1) {
    model::move_llama_to_chunk(graph_, tokens.first, tokens.count);
  } else {
    model::move_llama_to_token(graph_, program.shape, tokens.first);
  }
}

void LlamaPrograms::select(std::size_t program, TokenRange tokens) {
  is_first_ = is_first_ && program == active_ && tokens.first == selected_.first &&
              tokens.count == selected_.count;
  activate(program);
  move(tokens);
  selected_ = tokens;
}

const mapper::Mapping& LlamaPrograms::map() {
  if (std::exchange(is_first_, false)) return current_;
  Program& program = programs_.at(active_);
  const bool with_constants = !std::exchange(program.is_in_memory, true);
  current_ = program.mapper->map(graph_, with_constants, std::move(current_));
  // What tensors begin with is in memory, or comes from map_first().
  take_out_data(program.constants_begin, current_.image);
  return current_;
}

const mapper::Mapping& LlamaPrograms::map_first() {
  map();
  put_first(std::exchange(tensors_, {}), current_.image);
  is_first_ = true;
  return current_;
}

void LlamaPrograms::release(std::size_t program) {
  Program& of = programs_.at(program);
  of.nodes = std::vector<model::Node>();
  of.mapper.reset();
}

}  // namespace systole::testbench

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "mapper/step_mapper.h"
#include "model/graph/graph.h"
#include "model/integer/integer_llama.h"

namespace systole::testbench {

/// Tokens of a text that go through the network together.
struct TokenRange {
  std::uint32_t first = 0, count = 0;
};

/// Programs of Llamas on one machine, one after the other in any order: those of a network share
/// its caches, and each has the weights in its own tiles. One graph has the tensors of all, and the
/// nodes of the program that was selected last.
class LlamaPrograms {
 public:
  explicit LlamaPrograms(const hw::Machine& machine) : machine_(machine) {}

  /// The program for one token at a time of a text of at most `positions`. Names of what it has
  /// begin with `network`, that of its tensors. Returns its number. Throws InputError as
  /// map_graph() does.
  std::size_t add_steps(const model::IntegerLlama& llama, std::uint32_t positions,
                        const std::string& network = "");
  /// The same for up to `chunk` tokens, at least two, at a time; logits of the last token, or of
  /// `every`. Names of its own begin with `program`, too. Nothing, where the machine has not the
  /// row statistics, or the memory, for it.
  std::optional<std::size_t> add_chunks(const model::IntegerLlama& llama, std::uint32_t positions,
                                        std::uint32_t chunk, bool every, const std::string& network,
                                        const std::string& program);

  [[nodiscard]] const hw::Machine& machine() const { return machine_; }

  /// Has the graph compute these tokens by that program.
  void select(std::size_t program, TokenRange tokens);
  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  /// The program of what was selected, valid until the next call. Its image has weights and
  /// parameters when it is the first one of its number.
  const mapper::Mapping& map();
  /// The same with what tensors of all programs begin with, for the first inference. If nothing
  /// else is selected, the next call of map() returns it again.
  const mapper::Mapping& map_first();
  /// The image of the last mapping, which has none from then on.
  [[nodiscard]] hw::MemoryImage take_image() { return std::exchange(current_.image, {}); }
  /// Frees the host memory of a program that is not selected any more.
  void release(std::size_t program);
  /// Where weights and parameters of a program are: the first byte, and the one after the last.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> constants_of(std::size_t program) const {
    const Program& of = programs_.at(program);
    return {of.constants_begin, of.constants_end};
  }
  /// Of the last call of map().
  [[nodiscard]] const mapper::Mapping& latest() const { return current_; }
  /// Rows of a program's input.
  [[nodiscard]] std::uint32_t input_rows(std::size_t program) const {
    return graph_.tensors[programs_.at(program).input].rows;
  }

 private:
  struct Program {
    std::vector<model::Node> nodes;  ///< while it is not selected
    model::TensorId input = model::kNoTensor, output = model::kNoTensor;
    std::uint32_t chunk = 1;
    model::LlamaShape shape;
    std::optional<mapper::StepMapper> mapper;
    bool is_in_memory = false;  ///< its weights and parameters, since the first map()
    std::uint64_t constants_begin = 0, constants_end = 0;
  };

  /// Takes over a graph at its largest step; `first`: the tokens to map first.
  std::size_t add(Program program, model::Graph graph, const std::string& network,
                  const std::string& prefix, std::uint32_t positions, TokenRange first);
  /// Its tensors as those of graph_, or new ones.
  void take_over(Program& program, model::Graph graph, const std::string& network,
                 const std::string& prefix);
  /// Lets nodes share the parameters of others that are equal.
  void share_parameters(std::vector<model::Node>& nodes) const;
  void activate(std::size_t program);
  void move(TokenRange tokens);

  const hw::Machine machine_;
  model::Graph graph_;
  std::deque<Program> programs_;  ///< not moved: they are large
  std::size_t active_ = SIZE_MAX;
  TokenRange selected_;
  hw::MemoryImage tensors_;  ///< what those of all programs begin with
  mapper::Mapping current_;
  bool is_first_ = false;  ///< `current_` is that of map_first(), and still selected
};

}  // namespace systole::testbench

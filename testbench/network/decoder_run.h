#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "mapper/step_mapper.h"
#include "model/build/decode_graph.h"
#include "model/graph/graph.h"
#include "model/integer/integer_llama.h"
#include "model/integer/integer_seq2seq.h"
#include "model/integer/integer_text.h"
#include "testbench/network/network_size.h"

namespace systole::testbench {

/// A network that works on one token after the other, and what it works on.
struct DecoderWork {
  model::Graph graph;  ///< at its last step, with the caches of the tokens before the first
  std::uint32_t past = 0;
  std::vector<std::vector<std::uint8_t>> inputs;  ///< bytes of the input tensor, step by step
  /// Moves the graph to the step of a token, from 0.
  std::function<void(model::Graph& graph, std::uint32_t token)> move = model::move_to_token;
};

/// With seeded weights. What a step reads does not depend on what the previous step gave: its input
/// is the seeded embedding of its position, as if all tokens were given at once. `size` says
/// `decode`. `with_weights` off: without values, and the caches begin with zeros. Throws InputError
/// if the weights alone are too much for the machine's DRAM.
[[nodiscard]] DecoderWork seeded_work(const NetworkSize& size, const hw::Machine& machine,
                                      bool with_weights);

/// A text of a text network, whose first `past` tokens are cached. Throws InputError for a network
/// that is no decoder, and for no token left.
[[nodiscard]] DecoderWork text_work(const model::IntegerText& text,
                                    const std::vector<std::int32_t>& ids, std::uint32_t past,
                                    const hw::Machine& machine);

/// The same of a Llama of a file.
[[nodiscard]] DecoderWork llama_work(const model::IntegerLlama& llama,
                                     const std::vector<std::int32_t>& ids, std::uint32_t past,
                                     const hw::Machine& machine);

/// Steps of the decoder of an encoder-decoder from the first position on, one token of each of
/// `beams` texts, without inputs. `memory`: what its encoder left for a text of `source` tokens
/// (model/build/seq2seq_graph.h).
[[nodiscard]] DecoderWork seq2seq_work(const model::IntegerSeq2Seq& network,
                                       std::uint32_t positions, std::uint32_t beams,
                                       std::uint32_t source, std::vector<std::uint8_t> memory,
                                       const hw::Machine& machine);

/// Inferences of one graph whose views differ from one to the next. Each has its own program;
/// tensors and weights stay where they are.
class SteppedRun {
 public:
  /// Moves the graph to an inference, from 0.
  using Move = std::function<void(model::Graph& graph, std::size_t inference)>;

  /// `graph` has the largest views of all; `inputs` are the bytes of its input tensor, one for each
  /// inference. Throws InputError as map_graph() does.
  SteppedRun(model::Graph graph, std::vector<std::vector<std::uint8_t>> inputs, Move move,
             const hw::Machine& machine);
  SteppedRun(const SteppedRun&) = delete;  // a thread may work on it
  SteppedRun& operator=(const SteppedRun&) = delete;

  /// From now on each call of step() has the inference after it mapped on a thread of its own: its
  /// mapping depends on no values. Mappings are the same.
  void map_ahead() { ahead_.emplace(Ahead{graph_, {}, 0, {}}); }

  /// As of the last call of step(), at first of the first inference.
  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  /// Of the first inference, with all constants and states.
  [[nodiscard]] const mapper::Mapping& first() const { return first_; }
  /// Moves to an inference, from 0; its mapping, whose image is the program alone. It is valid
  /// until the next call.
  const mapper::Mapping& step(std::size_t inference);
  /// The mapping of other nodes on the same tensors, which run before the next step
  /// (mapper::StepMapper::map_between()); the graph has them until then. They are no more than
  /// those of a step.
  const mapper::Mapping& between(std::vector<model::Node> nodes);
  /// Moves the graph alone.
  void move(std::size_t inference) { move_(graph_, inference); }
  /// Of the last call of step().
  [[nodiscard]] const mapper::Mapping& latest() const { return current_; }

  [[nodiscard]] const std::vector<std::vector<std::uint8_t>>& inputs() const { return inputs_; }
  /// Multiply-accumulates of all inferences together.
  [[nodiscard]] std::uint64_t macs() const { return macs_; }

 private:
  model::Graph graph_;
  std::vector<std::vector<std::uint8_t>> inputs_;
  Move move_;
  std::vector<model::Node> own_nodes_;  ///< while the graph has others
  mapper::StepMapper mapper_;
  mapper::Mapping first_, current_;
  std::uint64_t macs_ = 0;
  /// The inference that is mapped ahead. Its thread alone uses the mapper while it runs, so that it
  /// is the last member: it ends before the others go.
  struct Ahead {
    model::Graph graph;
    mapper::Mapping room;  ///< one that is not needed any more
    std::size_t inference = 0;
    std::future<mapper::Mapping> mapping;
  };
  void begin_ahead(std::size_t inference);
  std::optional<Ahead> ahead_;
};

/// Every step has its own program; weights and caches stay where they are.
class DecoderRun : public SteppedRun {
 public:
  /// Throws InputError as map_graph() does.
  DecoderRun(DecoderWork work, const hw::Machine& machine);

  [[nodiscard]] std::uint32_t past() const { return past_; }

 private:
  std::uint32_t past_;
};

}  // namespace systole::testbench

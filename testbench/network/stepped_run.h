#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "mapper/step_mapper.h"
#include "model/graph/graph.h"

namespace systole::testbench {

/// Inferences of one graph whose views differ from one to the next. Each has a program of its own;
/// tensors and weights stay where they are.
class SteppedRun {
 public:
  /// Moves the graph to an inference, from 0.
  using Move = std::function<void(model::Graph& graph, std::size_t inference)>;

  /// `graph` has the largest views of all; `inputs` are the bytes of its input tensor, one for each
  /// inference. Throws InputError as map_graph() does.
  SteppedRun(model::Graph graph, std::vector<std::vector<std::uint8_t>> inputs, Move move,
             const hw::Machine& machine);

  /// As of the last call of step(), at first of the first inference.
  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  /// Of the first inference, with all constants and states.
  [[nodiscard]] const mapper::Mapping& first() const { return first_; }
  /// Moves to an inference, from 0; its mapping, whose image is the program alone. It is valid
  /// until the next call.
  const mapper::Mapping& step(std::size_t inference);

  [[nodiscard]] const std::vector<std::vector<std::uint8_t>>& inputs() const { return inputs_; }
  /// Multiply-accumulates of all inferences together.
  [[nodiscard]] std::uint64_t macs() const { return macs_; }

 private:
  model::Graph graph_;
  std::vector<std::vector<std::uint8_t>> inputs_;
  Move move_;
  mapper::StepMapper mapper_;
  mapper::Mapping first_, current_;
  std::uint64_t macs_ = 0;
};

}  // namespace systole::testbench

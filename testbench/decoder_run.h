#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine.h"
#include "mapper/mapping.h"
#include "mapper/step_mapper.h"
#include "model/graph.h"
#include "testbench/network_size.h"

namespace systole::testbench {

/// A network with seeded weights that works on one token after the other. Every step has a program
/// of its own; weights and caches stay where they are. What a step reads does not depend on what
/// the step in front gave: its input is the seeded embedding of its position, as if all tokens were
/// given at once.
class DecoderRun {
 public:
  /// `size` says `decode`. `with_weights` off: without values, and the cache begins with zeros.
  /// Throws InputError as seeded_network() and map_graph() do.
  DecoderRun(const NetworkSize& size, const hw::Machine& machine, bool with_weights);

  /// Stands at the step of the last call of step(), at first at the first one.
  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  /// Of the first step, with all constants and caches.
  [[nodiscard]] const mapper::Mapping& first() const { return first_; }
  /// Moves to a step, from 0; its mapping, whose image is the program alone. It stands until the
  /// next call.
  const mapper::Mapping& step(std::size_t index);

  /// Bytes of the input tensor, step by step.
  [[nodiscard]] const std::vector<std::vector<std::uint8_t>>& inputs() const { return inputs_; }
  /// Multiply-accumulates of all steps together.
  [[nodiscard]] std::uint64_t macs() const { return macs_; }

 private:
  NetworkSize size_;
  model::Graph graph_;
  std::vector<std::vector<std::uint8_t>> inputs_;
  mapper::StepMapper mapper_;
  mapper::Mapping first_, current_;
  std::uint64_t macs_ = 0;
};

}  // namespace systole::testbench

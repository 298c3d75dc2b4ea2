#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine.h"
#include "mapper/mapping.h"
#include "mapper/step_mapper.h"
#include "model/graph.h"
#include "model/integer_text.h"
#include "testbench/network_size.h"

namespace systole::testbench {

/// A network that works on one token after the other, and what it works on.
struct DecoderWork {
  model::Graph graph;  ///< at its last step, with the caches of the tokens in front of the first
  std::uint32_t past = 0;
  std::vector<std::vector<std::uint8_t>> inputs;  ///< bytes of the input tensor, step by step
};

/// With seeded weights. What a step reads does not depend on what the step in front gave: its input
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

/// Every step has a program of its own; weights and caches stay where they are.
class DecoderRun {
 public:
  /// Throws InputError as map_graph() does.
  DecoderRun(DecoderWork work, const hw::Machine& machine);

  /// Stands at the step of the last call of step(), at first at the first one.
  [[nodiscard]] const model::Graph& graph() const { return work_.graph; }
  /// Of the first step, with all constants and caches.
  [[nodiscard]] const mapper::Mapping& first() const { return first_; }
  /// Moves to a step, from 0; its mapping, whose image is the program alone. It stands until the
  /// next call.
  const mapper::Mapping& step(std::size_t index);

  [[nodiscard]] const std::vector<std::vector<std::uint8_t>>& inputs() const {
    return work_.inputs;
  }
  [[nodiscard]] std::uint32_t past() const { return work_.past; }
  /// Multiply-accumulates of all steps together.
  [[nodiscard]] std::uint64_t macs() const { return macs_; }

 private:
  void move_to(std::size_t index);

  DecoderWork work_;
  mapper::StepMapper mapper_;
  mapper::Mapping first_, current_;
  std::uint64_t macs_ = 0;
};

}  // namespace systole::testbench

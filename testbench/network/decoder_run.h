#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"
#include "model/integer/integer_text.h"
#include "testbench/network/network_size.h"
#include "testbench/network/stepped_run.h"

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
class DecoderRun : public SteppedRun {
 public:
  /// Throws InputError as map_graph() does.
  DecoderRun(DecoderWork work, const hw::Machine& machine);

  [[nodiscard]] std::uint32_t past() const { return past_; }

 private:
  std::uint32_t past_;
};

}  // namespace systole::testbench

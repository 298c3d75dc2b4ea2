#include "testbench/network/stepped_run.h"

#include <utility>

#include "model/graph/graph_builder.h"

namespace systole::testbench {

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

}  // namespace systole::testbench

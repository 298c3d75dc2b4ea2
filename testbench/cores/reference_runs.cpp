#include "testbench/cores/reference_runs.h"

#include <utility>

namespace systole::testbench {

const model::Reference& ReferenceRuns::of(std::size_t inference) {
  std::unique_ptr<model::Reference>& reference = running_[inference];
  if (reference) return *reference;
  if (free_.empty()) {
    reference = std::make_unique<model::Reference>(graph_, reference_options(graph_));
  } else {
    reference = std::move(free_.back());
    free_.pop_back();
  }
  if (move_) move_(inference);
  run_reference(*reference, graph_, inputs_[inference],
                [&](std::size_t nodes) { count_.reference(nodes, graph_.nodes.size()); });
  return *reference;
}

void ReferenceRuns::end(std::size_t inference) {
  const auto found = running_.find(inference);
  if (found == running_.end()) return;
  free_.push_back(std::move(found->second));
  running_.erase(found);
}

}  // namespace systole::testbench

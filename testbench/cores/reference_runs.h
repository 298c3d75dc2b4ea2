#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/graph/reference.h"
#include "testbench/cores/core_plan.h"
#include "testbench/run/run_checks.h"

namespace systole::testbench {

/// The references of the inferences that are in flight, one run of each.
class ReferenceRuns {
 public:
  /// All must outlive it. `move`: of the graph; if it is set, inferences follow one another.
  ReferenceRuns(const model::Graph& graph, const std::vector<std::vector<std::uint8_t>>& inputs,
                const MoveGraph& move, CommandCount& count)
      : graph_(graph), inputs_(inputs), move_(move), count_(count) {}

  /// Runs it, the first time.
  const model::Reference& of(std::size_t inference);
  /// It is not asked for again.
  void end(std::size_t inference);

 private:
  const model::Graph& graph_;
  const std::vector<std::vector<std::uint8_t>>& inputs_;
  const MoveGraph& move_;
  CommandCount& count_;
  std::map<std::size_t, std::unique_ptr<model::Reference>> running_;
  std::vector<std::unique_ptr<model::Reference>> free_;
};

}  // namespace systole::testbench

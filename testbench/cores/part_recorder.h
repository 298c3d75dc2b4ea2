#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/graph/graph.h"
#include "testbench/cores/core_plan.h"
#include "testbench/run/result_rows.h"
#include "testbench/run/tensor_origin.h"

namespace systole::testbench {

/// Keeps tensors of a graph as the commands of several cores leave them in memory, each a part of
/// some, for inferences that overlap.
class PartRecorder {
 public:
  PartRecorder(const model::Graph& graph, const std::vector<model::TensorId>& tensors,
               std::size_t inferences);

  [[nodiscard]] bool keeps_any() const { return !kept_.empty(); }
  /// `origins` as of CoreProgram, whose graph has the tensor of `row`.
  void keep(const WrittenRow& row, const std::vector<TensorOrigin>& origins, std::size_t inference);
  /// By tensor and inference.
  [[nodiscard]] std::vector<std::vector<std::vector<std::uint8_t>>> take();

 private:
  std::vector<std::vector<std::vector<std::uint8_t>>> kept_;
  std::vector<std::size_t> index_;  ///< in `kept_`, by tensor of the graph
};

/// Tensors of the plan's graph that match a regular expression (ECMAScript, the whole name) and
/// that every core which computes them, or some of them, leaves in memory. Throws InputError as
/// find_tensors() of one program does.
[[nodiscard]] std::vector<model::TensorId> find_tensors(const std::string& expression,
                                                        const CorePlan& plan);

}  // namespace systole::testbench

#include "testbench/cores/part_recorder.h"

#include <algorithm>
#include <utility>

#include "testbench/run/tensor_file.h"

namespace systole::testbench {

PartRecorder::PartRecorder(const model::Graph& graph, const std::vector<model::TensorId>& tensors,
                           std::size_t inferences)
    : kept_(tensors.size()), index_(graph.tensors.size(), tensors.size()) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    index_.at(tensors[i]) = i;
    kept_[i].assign(inferences, std::vector<std::uint8_t>(graph.tensors[tensors[i]].bytes()));
  }
}

void PartRecorder::keep(const WrittenRow& row, const std::vector<TensorOrigin>& origins,
                        std::size_t inference) {
  static const TensorOrigin kSame;
  const TensorOrigin& origin = origins.empty() ? kSame : origins[row.tensor];
  const std::size_t i = index_[origins.empty() ? row.tensor : origin.whole];
  if (i == kept_.size()) return;
  std::vector<std::uint8_t>& to = kept_[i][inference];
  for (std::size_t byte = 0; byte < row.bytes.size(); ++byte) {
    to[origin.place_of(row.offset + byte)] = row.bytes[byte];
  }
}

std::vector<std::vector<std::vector<std::uint8_t>>> PartRecorder::take() {
  return std::move(kept_);
}

std::vector<model::TensorId> find_tensors(const std::string& expression, const CorePlan& plan) {
  const std::size_t count = plan.graph->tensors.size();
  std::vector<bool> left(count), hidden(count);
  for (const CoreProgram& program : plan.programs) {
    const std::vector<bool> written = written_tensors(*program.graph, *program.mapping);
    for (const model::Node& node : program.graph->nodes) {
      const model::TensorId here = node.out.tensor;
      const model::TensorId whole = program.origins.empty() ? here : program.origins[here].whole;
      if (whole == model::kNoTensor) continue;
      (written[here] ? left : hidden)[whole] = true;
    }
  }
  for (std::size_t id = 0; id < count; ++id) left[id] = left[id] && !hidden[id];
  return find_tensors(expression, *plan.graph, left);
}

}  // namespace systole::testbench

#include "testbench/network/accuracy.h"

#include "base/error.h"
#include "base/printable.h"
#include "model/build/encoder_graph.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/float/float_vit.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "testbench/common/progress.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {

bool Accuracy::holds() const {
  return real >= kLeastRealAccuracy && real - integer <= kLargestLoss;
}

double integer_accuracy(const model::IntegerVit& vit, const model::Dataset& data,
                        const std::function<void(std::size_t)>& progress) {
  const model::Graph graph = model::make_vit_graph(vit);
  const model::Tensor& input = graph.tensors[input_tensor(graph)];
  const model::Tensor& output = graph.tensors[output_tensor(graph)];
  model::Reference reference(graph, {true, false});
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    reference.set_input(input.name, model::patches_of(data, i, vit.shape));
    reference.run();
    if (model::argmax(reference.values(output.name)) == data.labels[i]) ++right;
    if (progress) progress(i + 1);
  }
  return static_cast<double>(right) / static_cast<double>(data.count);
}

Accuracy measure_accuracy(const model::IntegerVit& vit, const std::string& checkpoint_path,
                          const model::Dataset& data) {
  if (data.labels.empty()) throw hw::InputError("pictures: no labels, which an accuracy needs");
  const model::FloatVit real(model::load_vit_checkpoint(checkpoint_path));
  if (!(real.shape() == vit.shape)) {
    throw hw::InputError(hw::printable(checkpoint_path) + ": has another shape than " + vit.name);
  }
  Accuracy accuracy;
  accuracy.images = data.count;
  accuracy.real = model::float_accuracy(real, data);
  Progress progress(data.count);
  accuracy.integer = integer_accuracy(vit, data, [&](std::size_t done) { progress.update(done); });
  return accuracy;
}

}  // namespace systole::testbench

#include "tests/model/vision.h"

#include <algorithm>

#include "model/float/float_vit.h"

namespace systole::model {

std::vector<std::int32_t> integer_logits(const Graph& graph, const VitShape& shape,
                                         const Dataset& data, std::size_t count,
                                         ReferenceOptions options) {
  Reference reference(graph, options);
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < count; ++i) {
    reference.set_input("patches", patches_of(data, i, shape));
    reference.run();
    const std::vector<std::int32_t> logits = reference.values("logits");
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

double integer_accuracy(const std::vector<std::int32_t>& logits, const Dataset& data) {
  const std::size_t classes = logits.size() / data.count;
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(i * classes);
    const auto largest = std::max_element(first, first + static_cast<std::ptrdiff_t>(classes));
    if (largest - first == data.labels[i]) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(data.count);
}

}  // namespace systole::model

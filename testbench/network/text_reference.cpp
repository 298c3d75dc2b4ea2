#include "testbench/network/text_reference.h"

#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "model/build/text_graph.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {

model::FloatText load_real_text(const model::IntegerText& text,
                                const std::string& checkpoint_path) {
  model::FloatText real(model::load_text_checkpoint(checkpoint_path));
  if (!(real.shape() == text.shape)) {
    throw hw::InputError(hw::printable(checkpoint_path) + ": has another shape than " + text.name);
  }
  return real;
}

void compute_texts(const model::IntegerText& text, const model::TokenIds& texts,
                   const std::function<void(std::size_t, const std::vector<std::int32_t>&)>& take) {
  // One graph at a time: each has all weights.
  std::map<std::size_t, std::vector<std::size_t>> by_length;
  for (std::size_t i = 0; i < texts.count; ++i) by_length[texts.valid[i]].push_back(i);
  for (const auto& [length, indices] : by_length) {
    const model::Graph graph = model::make_text_graph(text, static_cast<std::uint32_t>(length));
    const model::Tensor& input = graph.tensors[input_tensor(graph)];
    const model::Tensor& output = graph.tensors[output_tensor(graph)];
    model::Reference reference(graph, {true, false});
    for (const std::size_t i : indices) {
      const model::TokenText tokens = texts.text(i).trimmed();
      reference.set_input(input.name, model::embed_tokens(text, tokens.ids, 0, tokens.types));
      reference.run();
      take(i, reference.values(output.name));
    }
  }
}

}  // namespace systole::testbench

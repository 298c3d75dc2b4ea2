#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/build/llama_graph.h"
#include "model/graph/reference.h"
#include "model/integer/integer_llama.h"
#include "support/network/random_llama.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/generation/llama_generation.h"

namespace systole::test {

/// The likeliest token after a text, by the reference and all tokens at once.
inline std::int32_t next_of(const model::IntegerLlama& llama,
                            const std::vector<std::int32_t>& text) {
  const model::Graph graph =
      model::make_llama_graph(llama, static_cast<std::uint32_t>(text.size()));
  model::Reference reference(graph);
  reference.set_input("embedding", model::embed_tokens(llama, text));
  reference.run();
  const std::vector<std::int32_t> logits = reference.values("logits");
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// So many tokens after a text.
inline std::vector<std::int32_t> text_of(const model::IntegerLlama& llama,
                                         std::vector<std::int32_t> text, std::size_t tokens) {
  const std::size_t prompt = text.size();
  while (text.size() < prompt + tokens) text.push_back(next_of(llama, text));
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()};
}

/// A machine of any kind that Llamas can run on.
inline hw::Machine random_llama_machine(Random& random) {
  hw::Machine machine = random_network_machine(random);
  machine.datapath.residual_bits = 24;
  machine.postop.row_statistics = 4096;
  return machine;
}

/// generate() that may be called again in the same process.
inline testbench::LlamaGeneration generate_once(const hw::Machine& machine,
                                                const model::IntegerLlama& llama,
                                                const testbench::LlamaTask& task) {
  fresh_kernel();
  return testbench::generate(machine, llama, task);
}

}  // namespace systole::test

#include "testbench/network/llama_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/testbench/generation/reference_text.h"

namespace systole::testbench {
namespace {

using Parameters = hw::SharedVector<std::int32_t>;

std::vector<Parameters> parameters_of(const model::Graph& graph) {
  std::vector<Parameters> all;
  for (const model::Node& node : graph.nodes) {
    if (node.stage() != nullptr && !node.stage()->parameters.empty()) {
      all.push_back(node.stage()->parameters);
    }
  }
  return all;
}

// Of any Llama: what steps and chunks of a prompt both know is in the host's memory once, and only
// what is equal is shared.
TEST(LlamaPrograms, ShareParametersOfTheSameNetwork) {
  test::Random random(11);
  std::size_t shared = 0;
  for (int n = 0; n < 20; ++n) {
    const hw::Machine machine = test::random_llama_machine(random);
    const model::IntegerLlama llama =
        test::random_integer_llama(random, test::random_llama_shape(random), machine.datapath);
    LlamaPrograms programs(machine);
    const std::size_t steps = programs.add_steps(llama, 12);
    const auto chunks = programs.add_chunks(llama, 12, 5, false, "", "prompt.");
    if (!chunks) continue;
    programs.select(steps, {0, 1});
    const std::vector<Parameters> of_steps = parameters_of(programs.graph());
    programs.select(*chunks, {0, 5});
    for (const Parameters& words : parameters_of(programs.graph())) {
      const auto equal = std::find(of_steps.begin(), of_steps.end(), words);
      if (equal == of_steps.end()) continue;
      const bool is_shared =
          std::any_of(of_steps.begin(), of_steps.end(),
                      [&](const Parameters& each) { return each.identity() == words.identity(); });
      EXPECT_TRUE(is_shared) << n << ": " << words.size() << " words";
      ++shared;
    }
  }
  EXPECT_GT(shared, 100U) << "or nothing was tried";
}

// An image is given away once. That of the first inference is so when its program is asked for
// again.
TEST(LlamaPrograms, GiveEachImageAway) {
  test::Random random(5);
  const hw::Machine machine = test::random_llama_machine(random);
  const model::IntegerLlama llama =
      test::random_integer_llama(random, test::random_llama_shape(random), machine.datapath);
  LlamaPrograms programs(machine);
  const std::size_t steps = programs.add_steps(llama, 8);
  programs.select(steps, {0, 1});
  const std::size_t pieces = programs.map_first().image.size();
  const std::size_t commands = programs.latest().program.commands.size();
  EXPECT_GT(pieces, 1U);
  programs.select(steps, {0, 1});
  EXPECT_EQ(programs.map().image.size(), pieces);
  EXPECT_EQ(programs.take_image().size(), pieces);
  EXPECT_TRUE(programs.latest().image.empty());
  EXPECT_EQ(programs.latest().program.commands.size(), commands);
  programs.select(steps, {0, 1});
  ASSERT_EQ(programs.map().image.size(), 1U) << "the program alone";
  EXPECT_TRUE(programs.take_image().front().is_program);
  EXPECT_TRUE(programs.latest().image.empty());
}

}  // namespace
}  // namespace systole::testbench

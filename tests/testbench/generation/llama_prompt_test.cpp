#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "testbench/network/llama_run.h"
#include "tests/testbench/generation/reference_text.h"

namespace systole::testbench {
namespace {

using Ids = std::vector<std::int32_t>;

// Any Llama on any machine, in chunks of any size: the text of the reference, every operator of
// every program what it should be, and so the text of one token at a time.
TEST(LlamaPrompt, WritesTheSameTextInAnyChunks) {
  test::Random random(7);
  std::size_t together = 0;
  for (int n = 0; n < 9; ++n) {
    const hw::Machine machine = test::random_llama_machine(random);
    const model::IntegerLlama llama =
        test::random_integer_llama(random, test::random_llama_shape(random), machine.datapath);
    LlamaTask task;
    task.prompt = test::random_tokens<std::int32_t>(random, test::between(random, 1, 17),
                                                    llama.shape.vocabulary);
    task.tokens = test::between(random, 1, 4);
    task.check = true;
    const Ids expected = test::text_of(llama, task.prompt, task.tokens);
    for (const std::uint32_t chunk : {0U, 1U, test::between(random, 2, 9)}) {
      task.chunk = chunk;
      const LlamaGeneration generation = test::generate_once(machine, llama, task);
      EXPECT_EQ(generation.tokens, expected) << n << ", chunk " << chunk;
      EXPECT_EQ(generation.measurement.mismatches(), 0U)
          << n << ", chunk " << chunk << ": " << generation.measurement.result.check.first;
      if (chunk != 0) EXPECT_LE(generation.chunk, chunk);
      EXPECT_EQ(generation.prompts, (task.prompt.size() + generation.chunk - 1) / generation.chunk);
      EXPECT_EQ(generation.measurement.result.cycles.size(), generation.prompts + task.tokens - 1);
      together += generation.chunk != 1 ? 1 : 0;
    }
  }
  EXPECT_GT(together, 9U) << "or nothing was tried";
}

/// What does not fit goes in halves of it, or token by token, and writes the same text.
TEST(LlamaPrompt, FallsBackToWhatTheMachineCanHold) {
  test::Random random(3);
  model::LlamaShape shape = test::random_llama_shape(random);
  shape.heads = shape.kv_heads = 2;
  hw::Machine machine = hw::find_machine("transformer");
  machine.datapath.residual_bits = 24;
  machine.postop.row_statistics = 4096;
  const model::IntegerLlama llama = test::random_integer_llama(random, shape, machine.datapath);
  LlamaTask task;
  task.prompt = test::random_tokens<std::int32_t>(random, 33, shape.vocabulary);
  task.tokens = 3;
  const LlamaGeneration whole = test::generate_once(machine, llama, task);
  EXPECT_EQ(whole.chunk, 33U);
  EXPECT_EQ(whole.prompts, 1U);
  machine.postop.row_statistics = 64;
  const LlamaGeneration parts = test::generate_once(machine, llama, task);
  EXPECT_LT(parts.chunk, 33U);
  EXPECT_GT(parts.chunk, 1U);
  EXPECT_EQ(parts.tokens, whole.tokens);
  machine.postop.row_statistics = 6;
  const LlamaGeneration single = test::generate_once(machine, llama, task);
  EXPECT_EQ(single.chunk, 1U);
  EXPECT_EQ(single.tokens, whole.tokens);
  EXPECT_EQ(single.prompts, 33U);
  // Three times as fast at the least, with a few parts between.
  EXPECT_LT(3 * whole.prompt_seconds(), single.prompt_seconds());
  EXPECT_LT(whole.prompt_seconds(), parts.prompt_seconds());
  EXPECT_LT(parts.prompt_seconds(), single.prompt_seconds());
  EXPECT_LT(2 * whole.prompt_joules(), single.prompt_joules());

  machine.postop.row_statistics = 4096;
  model::IntegerLlama windowed = llama;
  windowed.shape.window = 8;
  EXPECT_EQ(LlamaRun(windowed, {16, 20, 0}, machine).chunk(), 1U) << "each token has other keys";
  windowed.shape.window = 20;
  EXPECT_EQ(LlamaRun(windowed, {16, 20, 0}, machine).chunk(), 16U);
}

// A step is what it is without a prompt before it, down to its cycles; the phases of a prompt are
// its time.
TEST(LlamaPrompt, LeavesTheStepsAsTheyAre) {
  test::Random random(11);
  const model::LlamaShape shape = test::random_llama_shape(random);
  hw::Machine machine = hw::find_machine("transformer");
  machine.datapath.residual_bits = 24;
  const model::IntegerLlama llama = test::random_integer_llama(random, shape, machine.datapath);
  LlamaTask task;
  task.prompt = test::random_tokens<std::int32_t>(random, 12, shape.vocabulary);
  task.tokens = 5;
  const LlamaGeneration at_once = test::generate_once(machine, llama, task);
  task.chunk = 1;
  const LlamaGeneration single = test::generate_once(machine, llama, task);
  ASSERT_EQ(at_once.measurement.result.cycles.size(), 5U);
  ASSERT_EQ(single.measurement.result.cycles.size(), 16U);
  for (std::size_t i = 1; i < 5; ++i) {
    const auto a = static_cast<double>(at_once.measurement.result.cycles[i]);
    const auto b = static_cast<double>(single.measurement.result.cycles[11 + i]);
    EXPECT_NEAR(a, b, 0.04 * b) << "programs are fetched from elsewhere";
  }
  EXPECT_NEAR(at_once.joules_per_token(), single.joules_per_token(),
              0.03 * single.joules_per_token());
  const std::uint64_t phases =
      std::accumulate(at_once.prompt_phases.begin(), at_once.prompt_phases.end(), std::uint64_t{0});
  EXPECT_LE(phases, at_once.measurement.result.cycles.front());
  EXPECT_GT(phases, at_once.measurement.result.cycles.front() * 8 / 10);
  EXPECT_EQ(at_once.positions, (Ids{11, 12, 13, 14, 15}));
}

}  // namespace
}  // namespace systole::testbench

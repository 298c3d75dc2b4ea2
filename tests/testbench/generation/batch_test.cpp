#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "testbench/generation/generation.h"
#include "tests/testbench/generation/odd_gpt.h"

namespace systole::testbench {
namespace {

using Texts = std::vector<std::vector<std::uint32_t>>;
/// Logits by text and position.
using LogitsByPlace = std::map<std::pair<std::size_t, std::uint32_t>, std::vector<hw::Half>>;

Texts random_texts(std::size_t count, std::size_t length, std::uint32_t words, unsigned seed) {
  std::mt19937 random(seed);
  Texts texts(count);
  for (auto& text : texts) {
    for (std::size_t i = 0; i < length; ++i) text.push_back(random() % words);
  }
  return texts;
}

/// Texts of one length, `batch` of them side by side.
LogitsByPlace logits_of(const hw::Machine& machine, const model::Gpt& gpt, const Texts& texts,
                        std::uint32_t batch) {
  LogitsByPlace found;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.texts = texts;
  task.batch = batch;
  std::size_t window = 0, in_window = 0;
  task.on_logits = [&](std::uint32_t position, const std::vector<hw::Half>& logits) {
    const std::size_t beside = std::min<std::size_t>(batch, texts.size() - window);
    found[{window + in_window, position}] = logits;
    if (++in_window < beside) return;
    in_window = 0;
    if (position + 1 == texts.front().size()) window += beside;
  };
  test::generate_once(machine, task);
  return found;
}

// Each text has the bits that it has alone, whatever else runs, in rows, passes or stages.
TEST(Batch, TextsHaveTheBitsThatTheyHaveAlone) {
  const model::Gpt gpt = test::odd_gpt();
  const Texts texts = random_texts(11, 5, gpt.shape.vocabulary, 3);
  for (const auto format : {hw::dfx::Format::kFp16, hw::dfx::Format::kInt8}) {
    hw::Machine plain = test::machine_with(1);
    plain.matrix.format = format;
    const LogitsByPlace alone = logits_of(plain, gpt, texts, 1);
    ASSERT_EQ(alone.size(), texts.size() * texts.front().size());
    for (const std::uint32_t cores : {1U, 3U, 4U}) {
      hw::Machine machine = plain;
      machine.dfx.cores = cores;
      EXPECT_EQ(logits_of(machine, gpt, texts, 4), alone) << cores << " serial";
      machine.dfx.batching = hw::dfx::Batching::kShared;
      for (const std::uint32_t batch : {2U, 7U, 11U}) {
        EXPECT_EQ(logits_of(machine, gpt, texts, batch), alone) << cores << " shared " << batch;
      }
      machine.dfx.parallelism = hw::dfx::Parallelism::kPipelined;
      for (const std::uint32_t batch : {1U, 3U, 11U}) {
        EXPECT_EQ(logits_of(machine, gpt, texts, batch), alone) << cores << " stages " << batch;
      }
    }
  }
}

TEST(Batch, APromptThroughThePipelineTogetherHasTheSameBits) {
  const model::Gpt gpt = test::odd_gpt();
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.prompt = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  task.tokens = 4;
  const Generation alone = test::generate_once(test::machine_with(1), task);
  hw::Machine machine = test::machine_with(3);
  machine.dfx.parallelism = hw::dfx::Parallelism::kPipelined;
  const Generation serial = test::generate_once(machine, task);
  EXPECT_EQ(serial.tokens, alone.tokens);
  machine.dfx.prefill = hw::dfx::Prefill::kBatched;
  const Generation together = test::generate_once(machine, task);
  EXPECT_EQ(together.tokens, alone.tokens);
  EXPECT_LT(together.total_ps, serial.total_ps) << "tokens of the prompt overlap";
}

TEST(Batch, GeneratesEveryTextOfThePrompt) {
  const model::Gpt gpt = test::odd_gpt();
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.prompt = {3, 1, 4, 1, 5};
  task.tokens = 6;
  hw::Machine machine = test::machine_with(2);
  const Generation alone = test::generate_once(machine, task);
  task.batch = 3;
  for (const auto batching : {hw::dfx::Batching::kSerial, hw::dfx::Batching::kShared}) {
    machine.dfx.batching = batching;
    const Generation batch = test::generate_once(machine, task);
    EXPECT_EQ(batch.tokens, alone.tokens);
    ASSERT_EQ(batch.others.size(), 2U);
    for (const auto& other : batch.others) EXPECT_EQ(other, alone.tokens);
    EXPECT_EQ(batch.passes, alone.passes * (batching == hw::dfx::Batching::kShared ? 1 : 3));
  }
}

/// From a token of a text to its next one; four of equal cores can divide the network evenly.
double step_ps(const hw::Machine& machine, std::uint32_t batch) {
  GenerationTask task;
  task.shape = model::gpt_shape("gpt2");
  task.shape.encoder.layers = 8;
  task.shape.vocabulary = 1024;
  task.prompt.assign(2, 0);
  task.tokens = 2;
  task.batch = batch;
  return static_cast<double>(test::generate_once(machine, task).total_ps) / (2 + 2);
}

// Serial texts read the weights again and gain nothing; those that share them read them once.
TEST(Batch, OnlySharedWeightsAreReadOnce) {
  GenerationTask task;
  task.shape = model::gpt_shape("gpt2");
  task.shape.encoder.layers = 4;
  task.prompt.assign(2, 0);
  task.tokens = 2;
  hw::Machine machine = test::machine_with(2);
  const Generation one = test::generate_once(machine, task);
  task.batch = 4;
  const Generation serial = test::generate_once(machine, task);
  machine.dfx.batching = hw::dfx::Batching::kShared;
  const Generation shared = test::generate_once(machine, task);
  const auto bytes = [](const Generation& run) { return static_cast<double>(run.hbm_read_bytes); };
  EXPECT_NEAR(bytes(serial), 4 * bytes(one), 0.001 * bytes(serial));
  EXPECT_LT(bytes(shared), 1.1 * bytes(one));
  EXPECT_GT(bytes(shared), bytes(one));
  EXPECT_NEAR(static_cast<double>(serial.total_ps), 4.0 * static_cast<double>(one.total_ps),
              0.01 * static_cast<double>(serial.total_ps));
  EXPECT_LT(shared.total_ps, serial.total_ps);
}

// A text alone has one core at a time; as many as there are cores keep all of them busy.
TEST(Batch, APipelineGainsWithTextsAlone) {
  hw::Machine machine = test::machine_with(4);
  const double divided = step_ps(machine, 1);
  machine.dfx.parallelism = hw::dfx::Parallelism::kPipelined;
  const double one = step_ps(machine, 1), many = step_ps(machine, 8);
  const double one_core = step_ps(test::machine_with(1), 1);
  EXPECT_GT(one, one_core) << "hand-overs come in";
  EXPECT_LT(one, 1.05 * one_core);
  EXPECT_GT(one, divided);
  EXPECT_LT(many, 3.5 * one) << "8 texts and 3 steps to fill and drain, of 8 x 4";
  EXPECT_GT(many, (8.0 + 3) / 4 * one_core * 0.9);
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/network/random_llama.h"
#include "support/network/tiny_llama.h"
#include "support/temp_directory.h"
#include "testbench/generation/generation.h"
#include "testbench/generation/ring_text.h"
#include "tests/testbench/generation/gpt_oracle.h"
#include "tests/testbench/generation/odd_gpt.h"

namespace systole::testbench {
namespace {

using hw::Half;
using test::between;
using test::one_of;
using Vector = std::vector<Half>;
using TokenIds = std::vector<std::uint32_t>;

/// One that a ring can run; of some RoPE is scaled.
model::LlamaShape ring_llama_shape(test::Random& random) {
  model::LlamaShape shape = test::random_llama_shape(random);
  shape.gelu = shape.head_norms = false;
  if (random() % 2 == 0) return shape;
  for (std::uint32_t i = 0; i < shape.head_width / 2; ++i) {
    shape.rope_frequencies.push_back(1.0 / between(random, 1, 1000));
  }
  return shape;
}

/// Weights that make a difference, and a word whose squares no half holds.
model::Gpt random_llama(test::Random& random) {
  model::Gpt gpt = model::seeded_gpt("llama", model::GptShape(ring_llama_shape(random)), random());
  gpt.norm_epsilon = random() % 2 == 0 ? 1e-5 : 1e-6;
  for (model::GptLayer& layer : gpt.layers) {
    for (auto* linear : {&layer.query, &layer.key, &layer.value, &layer.gate, &layer.fc1}) {
      for (Half& weight : linear->weight) weight = hw::half_mul(weight, hw::to_half(8.0));
    }
  }
  gpt.word[std::size_t{5} * gpt.shape.encoder.width + 3] = hw::to_half(20000.0);
  return gpt;
}

hw::Machine random_ring(test::Random& random, std::uint32_t cores) {
  hw::Machine machine = test::machine_with(cores, random() % 2 == 0 ? "dfx" : "dfx-ideal");
  machine.matrix.depth = one_of<std::uint32_t>(random, {16U, 32U, 64U, 128U});
  machine.matrix.lanes = one_of<std::uint32_t>(random, {4U, 16U, 32U});
  machine.matrix.partial_sums = 32;
  machine.dfx.heads = one_of<hw::dfx::HeadOrder>(
      random, {hw::dfx::HeadOrder::kSerial, hw::dfx::HeadOrder::kInterleaved});
  machine.dfx.projections = one_of<hw::dfx::ProjectionOrder>(
      random, {hw::dfx::ProjectionOrder::kValueFirst, hw::dfx::ProjectionOrder::kQueryFirst});
  machine.dfx.prefill =
      one_of<hw::dfx::Prefill>(random, {hw::dfx::Prefill::kSerial, hw::dfx::Prefill::kBatched});
  machine.dfx.lm_head =
      one_of<hw::dfx::Placement>(random, {hw::dfx::Placement::kHbm, hw::dfx::Placement::kDdr});
  machine.dfx.chaining = one_of<hw::dfx::Chaining>(
      random, {hw::dfx::Chaining::kVector, hw::dfx::Chaining::kInstruction});
  machine.ring.sync =
      one_of<hw::dfx::Sync>(random, {hw::dfx::Sync::kBlocking, hw::dfx::Sync::kOverlapped});
  machine.ring.directions = between(random, 1, 2);
  return machine;
}

struct LlamaOutcome {
  Generation generation;
  std::vector<Vector> logits;
  TokenIds positions;
};

LlamaOutcome run_llama_on(const hw::Machine& machine, const model::Gpt& gpt, const TokenIds& prompt,
                          std::uint32_t tokens) {
  LlamaOutcome outcome;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.prompt = prompt;
  task.tokens = tokens;
  task.on_logits = [&](std::uint32_t position, const Vector& logits) {
    outcome.positions.push_back(position);
    outcome.logits.push_back(logits);
  };
  outcome.generation = test::generate_once(machine, task);
  return outcome;
}

/// Logits after each token of a text, by the definition alone.
std::vector<Vector> defined_logits(const model::Gpt& gpt, const TokenIds& text,
                                   const hw::Machine& machine) {
  test::GptOracle oracle(gpt, machine.matrix.depth, machine.matrix.lanes);
  std::vector<Vector> all;
  for (const std::uint32_t id : text) all.push_back(oracle.logits(id));
  return all;
}

void expect_defined(const LlamaOutcome& outcome, const std::vector<Vector>& expected,
                    const std::string& what) {
  ASSERT_FALSE(outcome.logits.empty()) << what;
  for (std::size_t i = 0; i < outcome.logits.size(); ++i) {
    ASSERT_EQ(outcome.logits[i], expected.at(outcome.positions[i])) << what << ", logits " << i;
    for (const Half logit : outcome.logits[i]) ASSERT_FALSE(hw::is_nan(logit)) << what;
  }
}

// Any network on any machine: whole, by heads and columns on up to six cores, and by layers.
TEST(RingLlama, HasTheBitsOfItsDefinition) {
  test::Random random(22);
  for (int n = 0; n < 16; ++n) {
    const model::Gpt gpt = random_llama(random);
    const TokenIds prompt = {5, 1, 4, 1, 5, 9, 2, 6};
    hw::Machine machine = random_ring(random, 1);
    TokenIds text;
    std::vector<Vector> expected;
    for (const std::uint32_t cores : {1U, 2U, 4U, between(random, 3, 6)}) {
      machine.dfx.cores = cores;
      const LlamaOutcome outcome = run_llama_on(machine, gpt, prompt, 10);
      if (text.empty()) {
        text = prompt;
        text.insert(text.end(), outcome.generation.tokens.begin(), outcome.generation.tokens.end());
        expected = defined_logits(gpt, text, machine);
      }
      expect_defined(outcome, expected, std::to_string(n) + ", cores " + std::to_string(cores));
    }
    machine.dfx.parallelism = hw::dfx::Parallelism::kPipelined;
    expect_defined(run_llama_on(machine, gpt, prompt, 3), expected,
                   std::to_string(n) + ", pipelined");
  }
}

TEST(RingLlama, ReducesAndQuantisesToNearlyTheSameLogits) {
  test::Random random(5);
  for (int n = 0; n < 6; ++n) {
    model::Gpt gpt = random_llama(random);
    hw::Machine machine = test::machine_with(1);
    machine.matrix.partial_sums = 16;
    const TokenIds prompt = {3, 1, 4, 1, 9, 2, 6};
    const LlamaOutcome plain = run_llama_on(machine, gpt, prompt, 1);
    const auto error = [&](const LlamaOutcome& other) {
      float difference = 0, scale = 0;
      for (std::size_t i = 0; i < gpt.shape.vocabulary; ++i) {
        const float a = hw::to_float(plain.logits[6][i]), b = hw::to_float(other.logits[6][i]);
        difference = std::max(difference, std::fabs(a - b));
        scale = std::max(scale, std::fabs(a));
      }
      return difference / scale;
    };
    machine.matrix.format = hw::dfx::Format::kInt8;
    const LlamaOutcome int8 = run_llama_on(machine, gpt, prompt, 1);
    EXPECT_LT(error(int8), 0.2F) << n;
    EXPECT_GT(error(int8), 0.0F) << n;
    machine.dfx.cores = 3;
    EXPECT_EQ(run_llama_on(machine, gpt, prompt, 1).logits, int8.logits) << n;
    machine.matrix.format = hw::dfx::Format::kFp16;
    machine.ring.collective = hw::dfx::Collective::kAllReduce;
    EXPECT_LT(error(run_llama_on(machine, gpt, prompt, 1)), 0.05F) << n;
  }
}

TEST(RingLlama, TakesTheSameTimeWithoutValues) {
  test::Random random(6);
  for (int n = 0; n < 4; ++n) {
    const model::Gpt gpt = random_llama(random);
    hw::Machine machine = random_ring(random, between(random, 1, 4));
    const LlamaOutcome with = run_llama_on(machine, gpt, {1, 2, 3, 4, 6}, 4);
    GenerationTask task;
    task.shape = gpt.shape;
    task.prompt = {1, 2, 3, 4, 6};
    task.tokens = 4;
    const Generation without = test::generate_once(machine, task);
    // Phases may move by cycles: which word it is decides on a row of the DDR.
    EXPECT_EQ(without.total_ps, with.generation.total_ps) << n;
  }
}

// Bytes over a link: heads, projection, hidden layer and output, (N - 1) / N of each; the largest
// logits besides. Bytes out of the HBM: weights and caches, which query heads of a core share.
TEST(RingLlama, MovesTheBytesOfItsParts) {
  GenerationTask task;
  task.shape = load_ring_text("smollm2-135m", false).shape;
  task.shape.positions = 64;
  task.prompt.assign(3, 0);
  task.tokens = 1;
  constexpr std::uint64_t kPasses = 4, kHead = 64 * 2;
  const Generation three = test::generate_once(test::machine_with(3), task);
  ASSERT_EQ(three.passes, kPasses);
  for (const std::uint64_t bytes : three.link_bytes) {
    EXPECT_EQ(bytes, kPasses * (30 * 2 * (3 * 576 + 1536) / 3 * 2 + 128 * 2));
  }
  const Generation one = test::generate_once(test::machine_with(1), task);
  constexpr std::uint64_t kLayer = 2 * 576 * 576 + 2 * 192 * 576 + 3 * 1536 * 576;
  constexpr std::uint64_t kWeights = 2 * (30 * kLayer + 49152 * 576);
  EXPECT_EQ(one.weight_bytes, kWeights);
  // Keys by slices of 16 tokens, values by tiles of 64: 16 + 64 rows for every query head.
  EXPECT_EQ(one.hbm_read_bytes, kPasses * (kWeights + 30 * 9 * (16 + 64) * kHead));
  // Of three heads of keys each core has one; on two cores both have the second.
  EXPECT_EQ(three.weight_bytes, kWeights / 3);
  const Generation two = test::generate_once(test::machine_with(2), task);
  EXPECT_EQ(
      two.weight_bytes,
      2 * (30 * (576 * 4 * 64 + 576 * 288 + 2 * 576 * 128 + 3 * 1536 * 288) + 49152 / 2 * 576));
}

TEST(RingLlama, IsNearFloat32OnACheckpoint) {
  const TempDirectory directory;
  for (const bool tied : {true, false}) {
    const std::string path =
        test::TinyLlama::write(directory.path("llama.safetensors"), {true, tied, !tied});
    RingText text = load_ring_text(path, true);
    const model::LlamaCheckpoint real = test::TinyLlama::load(path);
    EXPECT_FALSE(text.tokeniser);
    text.limit_positions(20);
    const std::vector<std::int32_t> ids = test::TinyLlama::texts(1, 51).front();
    const Evaluation evaluation =
        evaluate(test::machine_with(2), *text.gpt, &real, ids, 50, [](std::size_t) {});
    test::fresh_kernel();
    EXPECT_EQ(evaluation.comparison.places(), 50U);
    EXPECT_LT(evaluation.comparison.mean_error(), 0.01);
    EXPECT_LT(evaluation.comparison.max_error(), 0.04);
    EXPECT_NEAR(evaluation.comparison.bits(), evaluation.comparison.reference_bits(), 0.02);
    EXPECT_GE(evaluation.comparison.same_top(), 0.96);
  }
}

TEST(RingLlama, MakesMemoryForTheTextAlone) {
  RingText text = load_ring_text("mistral-7b", false);
  EXPECT_EQ(text.shape.positions, 32768U);
  text.limit_positions(4096);
  EXPECT_EQ(text.shape.positions, 4096U);
  EXPECT_THROW(text.limit_positions(4097), hw::InputError) << "its window";
  RingText gpt2 = load_ring_text("gpt2", false);
  gpt2.limit_positions(10);
  EXPECT_EQ(gpt2.shape.positions, 1024U);
}

}  // namespace
}  // namespace systole::testbench

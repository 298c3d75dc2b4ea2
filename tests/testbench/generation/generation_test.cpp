#include "testbench/generation/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "support/tlm/fresh_kernel.h"
#include "tests/testbench/generation/gpt_oracle.h"
#include "tests/testbench/generation/odd_gpt.h"

namespace systole::testbench {
namespace {

using hw::Half;
using test::machine_with;
using test::odd_gpt;
using Vector = std::vector<Half>;

struct Outcome {
  Generation generation;
  std::vector<Vector> logits;
};

/// And nothing of the simulation left behind.
Generation generate_once(const hw::Machine& machine, const GenerationTask& task) {
  Generation generation = generate(machine, task);
  test::fresh_kernel();
  return generation;
}

Outcome run_on(hw::Machine machine, const model::Gpt& gpt, std::uint32_t tokens) {
  Outcome outcome;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.prompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 9};
  task.tokens = tokens;
  task.on_logits = [&](std::uint32_t, const Vector& logits) { outcome.logits.push_back(logits); };
  outcome.generation = generate_once(machine, task);
  return outcome;
}

std::uint32_t largest(const Vector& logits) {
  return static_cast<std::uint32_t>(
      std::max_element(logits.begin(), logits.end(),
                       [](Half a, Half b) { return hw::to_float(a) < hw::to_float(b); }) -
      logits.begin());
}

// Across the border of a tile of tokens: 12 + 60 of them.
TEST(Generation, HasTheBitsOfItsDefinitionOnAnyNumberOfCores) {
  const model::Gpt gpt = odd_gpt();
  constexpr std::uint32_t kTokens = 60;
  const Outcome alone = run_on(machine_with(1), gpt, kTokens);
  ASSERT_EQ(alone.generation.tokens.size(), kTokens);
  test::GptOracle oracle(gpt);
  std::uint32_t token = 0;
  const std::vector<std::uint32_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 9};
  for (std::size_t i = 0; i < prompt.size() + kTokens; ++i) {
    const Vector logits = oracle.logits(i < prompt.size() ? prompt[i] : token);
    ASSERT_EQ(alone.logits[i], logits) << "token " << i;
    token = largest(logits);
    if (i + 1 >= prompt.size() && i + 1 < prompt.size() + kTokens) {
      ASSERT_EQ(alone.generation.tokens[i + 1 - prompt.size()], token);
    }
  }
  for (const std::uint32_t cores : {2U, 3U, 4U, 8U}) {
    const Outcome shared = run_on(machine_with(cores), gpt, kTokens);
    EXPECT_EQ(shared.logits, alone.logits) << cores;
    EXPECT_EQ(shared.generation.tokens, alone.generation.tokens) << cores;
  }
}

// More cores than heads, than slices of the width and of the hidden layer, and than words.
TEST(Generation, CoresWithoutAPartHaveNothingToDo) {
  const model::Gpt gpt = odd_gpt();
  for (const auto format : {hw::dfx::Format::kFp16, hw::dfx::Format::kInt8}) {
    hw::Machine machine = machine_with(1);
    machine.matrix.format = format;
    const Outcome alone = run_on(machine, gpt, 3);
    const float scale = std::fabs(hw::to_float(alone.logits.back()[largest(alone.logits.back())]));
    for (const std::uint32_t cores : {5U, 9U, 13U, 40U}) {
      machine.dfx.cores = cores;
      machine.ring.collective = hw::dfx::Collective::kAllGather;
      const Outcome gathered = run_on(machine, gpt, 3);
      EXPECT_EQ(gathered.logits, alone.logits) << cores;
      EXPECT_EQ(gathered.generation.tokens, alone.generation.tokens) << cores;
      machine.ring.collective = hw::dfx::Collective::kAllReduce;
      const Outcome reduced = run_on(machine, gpt, 3);
      ASSERT_EQ(reduced.logits.size(), alone.logits.size()) << cores;
      for (std::size_t i = 0; i < gpt.shape.vocabulary; ++i) {
        // Of the last position of the prompt: tokens may differ after it.
        EXPECT_NEAR(hw::to_float(reduced.logits[11][i]), hw::to_float(alone.logits[11][i]),
                    0.1F * scale)
            << cores << ' ' << i;
      }
    }
  }
}

TEST(Generation, HasTheSameBitsWhateverTheMachineDoesForTime) {
  const model::Gpt gpt = odd_gpt();
  const Outcome plain = run_on(machine_with(1), gpt, 8);
  const auto same = [&](hw::Machine machine, const char* what) {
    const Outcome other = run_on(machine, gpt, 8);
    EXPECT_EQ(other.generation.tokens, plain.generation.tokens) << what;
    EXPECT_EQ(other.logits.back(),
              plain.logits[plain.logits.size() - 1 - (machine.dfx.last_pass ? 0 : 1)])
        << what;
  };
  same(machine_with(1, "dfx-ideal"), "ideal");
  hw::Machine machine = machine_with(2);
  machine.dfx.prefill = hw::dfx::Prefill::kBatched;
  same(machine, "batched prompt");
  machine = machine_with(3);
  machine.dfx.lm_head = hw::dfx::Placement::kDdr;
  same(machine, "LM head in DDR");
  machine = machine_with(4);
  machine.dfx.projections = hw::dfx::ProjectionOrder::kQueryFirst;
  machine.ring.directions = 1;
  machine.ring.sync = hw::dfx::Sync::kOverlapped;
  same(machine, "order, direction, overlap");
}

TEST(Generation, TakesTheSameTimeWithoutValues) {
  const model::Gpt gpt = odd_gpt();
  const hw::Machine machine = machine_with(2);
  const Outcome with = run_on(machine, gpt, 5);
  GenerationTask task;
  task.shape = gpt.shape;
  task.prompt.assign(12, 0);
  task.tokens = 5;
  const Generation without = generate_once(machine, task);
  EXPECT_EQ(without.total_ps, with.generation.total_ps);
  EXPECT_EQ(without.phases, with.generation.phases);
}

TEST(Generation, ReducesToNearlyTheSameLogits) {
  const model::Gpt gpt = odd_gpt();
  const Outcome gathered = run_on(machine_with(1), gpt, 1);
  hw::Machine machine = machine_with(4);
  machine.ring.collective = hw::dfx::Collective::kAllReduce;
  const Outcome reduced = run_on(machine, gpt, 1);
  float difference = 0, scale = 0;
  for (std::size_t i = 0; i < gathered.logits.back().size(); ++i) {
    const float a = hw::to_float(gathered.logits[11][i]), b = hw::to_float(reduced.logits[11][i]);
    difference = std::max(difference, std::fabs(a - b));
    scale = std::max(scale, std::fabs(a));
  }
  EXPECT_LT(difference, 0.02F * scale);
  EXPECT_GT(difference, 0.0F) << "the order of sums differs";
}

// Facts on DFX: 14 emb (N - 1) / N bytes per link and layer; the largest logits besides.
TEST(Generation, MovesTheBytesOfFourGathers) {
  GenerationTask task;
  task.shape = model::gpt_shape("gpt2-medium");
  task.prompt.assign(3, 0);
  task.tokens = 1;
  const Generation result = generate_once(machine_with(4), task);
  ASSERT_EQ(result.passes, 4U);
  const std::uint64_t winners = 128 * 3;
  for (const std::uint64_t bytes : result.link_bytes) {
    EXPECT_EQ(bytes, 4 * (24 * 14 * 1024 / 4 * 3 + winners));
  }
  EXPECT_NEAR(static_cast<double>(result.hbm_read_bytes) / 4, 706.9e6 / 4, 0.01 * 706.9e6 / 4);
}

TEST(Generation, TheTransposeHidesBehindKeyAndQuery) {
  const auto time_of = [](hw::dfx::ProjectionOrder order) {
    hw::Machine machine = machine_with(1, "dfx-ideal");
    machine.dfx.projections = order;
    GenerationTask task;
    task.shape = model::gpt_shape("gpt2-medium");
    task.prompt.assign(2, 0);
    return generate_once(machine, task).total_ps;
  };
  const std::uint64_t hidden = time_of(hw::dfx::ProjectionOrder::kValueFirst);
  const std::uint64_t exposed = time_of(hw::dfx::ProjectionOrder::kQueryFirst);
  // 16 heads of 64 elements, one a cycle, after less than 300 cycles of scores: 24 layers, twice.
  EXPECT_GT(exposed, hidden + std::uint64_t{24} * 2 * 500 * 5000);
}

// A host that draws tokens reads the register files of all cores at once: one latency, all bytes.
TEST(Generation, TheHostReadsLogitsOverPcie) {
  const model::Gpt gpt = odd_gpt();
  for (const std::uint32_t cores : {1U, 2U, 3U, 8U}) {
    const hw::Machine machine = machine_with(cores);
    const auto run = [&](std::uint32_t tokens) {
      GenerationTask task;
      task.shape = gpt.shape;
      task.gpt = &gpt;
      task.prompt = {3, 1, 4};
      task.tokens = tokens;
      Vector there;
      task.on_logits = [&](std::uint32_t, const Vector& logits) { there = logits; };
      task.sample = [&](const Vector& logits) {
        EXPECT_EQ(logits, there);
        return largest(logits);
      };
      return generate_once(machine, task);
    };
    const Generation five = run(5), one = run(1);
    const double transfer_ns =
        machine.pcie.latency_ns + gpt.shape.vocabulary * 2.0 / machine.pcie.gbyte_per_s;
    const double all_ns = 2 * machine.pcie.latency_ns + 5 * transfer_ns;
    EXPECT_NEAR(static_cast<double>(five.host_ps), 1e3 * all_ns, 5.0) << cores;
    EXPECT_EQ(five.first_token_ps, one.first_token_ps) << cores;
    EXPECT_LT(five.first_token_ps, five.total_ps / 2) << cores;
  }
}

TEST(Generation, RefusesTextsThatAreTooLong) {
  GenerationTask task;
  task.shape = model::gpt_shape("kjv");
  task.prompt.assign(200, 0);
  task.tokens = 57;
  EXPECT_THROW(static_cast<void>(generate(machine_with(1), task)), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

#include "testbench/generation/speculative_generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "support/network/tiny_llama.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "tests/testbench/generation/reference_text.h"

namespace systole::testbench {
namespace {

using Ids = std::vector<std::int32_t>;

/// What a draft should bring, from the reference of both alone.
Speculation expected_of(const model::IntegerLlama& draft, const Ids& prompt, const Ids& generated,
                        std::size_t proposals) {
  Speculation expected;
  Ids text = prompt;
  text.insert(text.end(), generated.begin(), generated.end());
  for (std::size_t place = prompt.size() + 1; place < text.size();) {
    const std::size_t wanted = std::min(proposals, text.size() - place - 1);
    const Ids proposed = test::text_of(
        draft, {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place)}, wanted);
    std::size_t accepted = 0;
    while (accepted < wanted && proposed[accepted] == text[place + accepted]) ++accepted;
    ++expected.passes;
    expected.proposed += wanted;
    expected.accepted += accepted;
    place += accepted + 1;
  }
  return expected;
}

struct Sums {
  std::size_t proposed = 0, accepted = 0;
};

void expect_same_text(const hw::Machine& machine, const model::IntegerLlama& llama,
                      const model::IntegerLlama& draft, LlamaTask task, Sums& sums) {
  task.check = true;
  task.draft = &draft;
  const LlamaGeneration generation = test::generate_once(machine, llama, task);
  ASSERT_EQ(generation.tokens, test::text_of(llama, task.prompt, task.tokens));
  EXPECT_EQ(generation.measurement.mismatches(), 0U) << generation.measurement.result.check.first;
  ASSERT_TRUE(generation.speculation);
  const Speculation& found = *generation.speculation;
  EXPECT_LE(found.draft_tokens, task.draft_tokens);
  const Speculation expected =
      expected_of(draft, task.prompt, generation.tokens, found.draft_tokens);
  EXPECT_EQ(found.passes, expected.passes);
  EXPECT_EQ(found.proposed, expected.proposed);
  EXPECT_EQ(found.accepted, expected.accepted);
  EXPECT_EQ(found.step_cycles != 0, task.tokens > 1);
  sums.proposed += found.proposed;
  sums.accepted += found.accepted;
}

// Whatever the draft is, and however many tokens it proposes; on any machine.
TEST(Speculation, WritesTheTextThatTheNetworkWritesAlone) {
  test::Random random(13);
  Sums others, own;
  for (int n = 0; n < 3; ++n) {
    const hw::Machine machine = test::random_llama_machine(random);
    model::LlamaShape shape = test::random_llama_shape(random);
    const model::IntegerLlama llama = test::random_integer_llama(random, shape, machine.datapath);
    const std::uint32_t vocabulary = shape.vocabulary;
    shape = test::random_llama_shape(random);
    shape.vocabulary = vocabulary;
    const model::IntegerLlama draft = test::random_integer_llama(random, shape, machine.datapath);
    LlamaTask task;
    task.prompt =
        test::random_tokens<std::int32_t>(random, test::between(random, 1, 9), vocabulary);
    task.tokens = test::between(random, 1, 9);
    task.draft_tokens = test::between(random, 1, 5);
    task.chunk = test::between(random, 0, 4);
    expect_same_text(machine, llama, draft, task, others);
    expect_same_text(machine, llama, llama, task, own);
    if (HasFatalFailure()) FAIL() << n;
  }
  EXPECT_EQ(own.accepted, own.proposed) << "a network agrees with itself";
  EXPECT_GT(own.accepted, 4U);
  EXPECT_LT(others.accepted, others.proposed / 2) << "and not with a stranger";
}

/// Two networks of which one is the other with some noise: part of the proposals are accepted.
TEST(Speculation, KeepsWhatIsRightOfWhatIsProposed) {
  test::Random random(21);
  hw::Machine machine = hw::find_machine("transformer");
  machine.datapath.residual_bits = 24;
  machine.postop.row_statistics = 4096;
  Sums sums;
  for (int n = 0; n < 4; ++n) {
    const model::LlamaShape shape = test::random_llama_shape(random);
    const model::IntegerLlama llama = test::random_integer_llama(random, shape, machine.datapath);
    model::IntegerLlama draft = llama;
    for (std::int8_t& weight : draft.output.weight.edit()) {
      if (random() % 3 == 0) weight = static_cast<std::int8_t>(weight / 2);
    }
    LlamaTask task;
    task.prompt = test::random_tokens<std::int32_t>(random, 5, shape.vocabulary);
    task.tokens = 14;
    task.draft_tokens = 3;
    expect_same_text(machine, llama, draft, task, sums);
    if (HasFatalFailure()) FAIL() << n;
  }
  EXPECT_GT(sums.accepted, 0U);
  EXPECT_LT(sums.accepted, sums.proposed);
}

TEST(Speculation, CountsWhatItTakesAndEndsWithTheText) {
  test::Random random(5);
  hw::Machine machine = hw::find_machine("transformer");
  machine.datapath.residual_bits = 24;
  machine.postop.row_statistics = 4096;
  const model::IntegerLlama llama =
      test::random_integer_llama(random, test::random_llama_shape(random), machine.datapath);
  LlamaTask task;
  task.prompt = {1, 2, 3};
  task.tokens = 9;
  task.draft = &llama;
  task.draft_tokens = 3;
  const LlamaGeneration whole = test::generate_once(machine, llama, task);
  const Speculation& s = *whole.speculation;
  EXPECT_EQ(s.passes, 2U) << "of four tokens each";
  const auto& cycles = whole.measurement.result.cycles;
  // The prompt of both, the single step, three steps of the draft, a pass; the draft's last token
  // has still to go through it before the next three.
  ASSERT_EQ(cycles.size(), 2U + 1 + 3 + 1 + 4 + 1);
  EXPECT_EQ(s.step_cycles, cycles[2]);
  EXPECT_EQ(s.verify_cycles, cycles[6] + cycles[11]);
  EXPECT_EQ(s.draft_cycles,
            std::accumulate(cycles.begin() + 3, cycles.end(), std::uint64_t{0}) - s.verify_cycles);
  EXPECT_NEAR(whole.tokens_per_second() * whole.generation_seconds(), 8.0, 1e-9);
  task.end = whole.tokens[4];
  const auto first = std::find(whole.tokens.begin(), whole.tokens.end(), task.end);
  const LlamaGeneration ended = test::generate_once(machine, llama, task);
  EXPECT_EQ(ended.tokens, Ids(whole.tokens.begin(), first + 1));
  machine.postop.row_statistics = 6;
  EXPECT_THROW(static_cast<void>(test::generate_once(machine, llama, task)), hw::InputError);
}

TEST(Speculation, RefusesADraftOfAnotherVocabulary) {
  const TempDirectory directory;
  const std::string real = directory.path("l.safetensors"), text = directory.path("text.txt"),
                    one = directory.path("a.int8.safetensors"),
                    other = directory.path("b.int8.safetensors");
  const std::vector<std::vector<std::int32_t>> texts = test::TinyLlama::texts(2, 20);
  const std::string ids = directory.path("ids.safetensors");
  std::vector<std::int64_t> all;
  for (const auto& each : texts) all.insert(all.end(), each.begin(), each.end());
  model::write_safetensors(ids,
                           {model::make_tensor("input_ids", model::FileDtype::kI64, {2, 20}, all)});
  test::TinyLlama::write(real);
  output_of({"quantise", real, "-c", ids, "-o", one});
  test::TinyLlama::write(
      real, {},
      R"({"kind":"byte_pairs","digits_alone":true,"tokens":["a","b"],"merges":[],"control":[]})");
  output_of({"quantise", real, "-c", ids, "-o", other});
  const Words same = {"generate", "--model", one, "--draft", one, "--input-tokens", "3", "-n", "5"};
  EXPECT_NE(output_of(same).find("accepted"), std::string::npos);
  Words wrong = same;
  wrong[4] = other;
  EXPECT_NE(run_systole(wrong).err.find("has another vocabulary, expected that of"),
            std::string::npos);
  wrong[4] = real;
  EXPECT_NE(run_systole(wrong).err.find("is no Llama of integers"), std::string::npos);
}

}  // namespace
}  // namespace systole::testbench

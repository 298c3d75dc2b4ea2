#include "testbench/generation/seq2seq_generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/build/seq2seq_graph.h"
#include "model/graph/reference.h"
#include "model/text/beam_search.h"
#include "support/input_error.h"
#include "support/network/random_seq2seq.h"
#include "support/tlm/fresh_kernel.h"

namespace systole::testbench {
namespace {

using Ids = std::vector<std::int32_t>;

/// Logits after a text that begins with the token that does so, both parts at once.
Ids last_logits(const model::IntegerSeq2Seq& network, const Ids& source, const Ids& text) {
  const model::Graph graph = model::make_seq2seq_graph(
      network, static_cast<std::uint32_t>(source.size()), static_cast<std::uint32_t>(text.size()));
  model::Reference reference(graph);
  reference.set_input(model::kSourceEmbedding, model::embed_pair(network, source, text));
  reference.run();
  const Ids logits = reference.values("logits");
  return {logits.end() - network.decoder.shape.vocabulary, logits.end()};
}

/// The search on logits of whole texts, without caches.
Ids expected_text(const model::IntegerSeq2Seq& network, const Seq2SeqTask& task) {
  model::BeamSearch search(task.beams, network.tokens.end);
  std::vector<Ids> slots(task.beams, Ids{network.tokens.begin});
  for (std::uint32_t i = 0; i < task.tokens; ++i) {
    std::vector<Ids> logits;
    for (const Ids& text : slots) logits.push_back(last_logits(network, task.source, text));
    const auto next = search.step(logits, network.logit_scale);
    if (next.empty()) break;
    const std::vector<Ids> before = slots;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      slots[s] = before[next[s].parent];
      slots[s].push_back(next[s].token);
    }
  }
  return search.best();
}

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

TEST(Seq2SeqGeneration, WritesTheReferencesTextOnAnyMachine) {
  test::Random random(11);
  std::size_t copies = 0, searched = 0;
  for (int round = 0; round < 24; ++round) {
    hw::Machine machine = test::random_machine(random);
    machine.postop.row_statistics = 2048;
    SCOPED_TRACE(round);
    test::RandomSeq2Seq made(random);
    const model::IntegerSeq2Seq network = made.integers(machine);
    Seq2SeqTask task;
    task.source = made.words(test::between(random, 1, 12), network.encoder.shape.vocabulary);
    task.tokens = test::between(random, 1, 7);
    task.beams = test::between(random, 1, 4);
    task.check = true;
    test::fresh_kernel();
    const Seq2SeqGeneration found = generate(machine, network, task);
    EXPECT_EQ(found.mismatches(), 0U)
        << found.encoder.check.first << found.decoder.result.check.first;
    EXPECT_GT(found.encoder.check.bytes, 0U);
    EXPECT_GT(found.decoder.result.check.bytes, 0U);
    EXPECT_EQ(found.tokens, expected_text(network, task));
    EXPECT_EQ(sum(found.steps) + sum(found.copies), sum(found.decoder.result.cycles));
    EXPECT_EQ(found.copies.empty(), found.copied_bytes == 0);
    EXPECT_LE(found.copies.size(), found.steps.size());
    copies += found.copies.size();
    searched += found.beams > 1 ? 1 : 0;
  }
  EXPECT_GT(copies, 10U);
  EXPECT_GT(searched, 10U);
}

// What beams share is paid once: weights, and keys and values of the encoder.
TEST(Seq2SeqGeneration, ReadsWeightsOnceForAllBeams) {
  test::Random random(3);
  const hw::Machine machine = hw::find_machine("transformer");
  test::RandomSeq2Seq made(random);
  const model::IntegerSeq2Seq network = made.integers(machine);
  Seq2SeqTask task;
  task.source = made.words(12, network.encoder.shape.vocabulary);
  task.tokens = 6;
  test::fresh_kernel();
  const Seq2SeqGeneration greedy = generate(machine, network, task);
  task.beams = 4;
  test::fresh_kernel();
  const Seq2SeqGeneration search = generate(machine, network, task);
  EXPECT_EQ(search.encoder.cycles, greedy.encoder.cycles);
  EXPECT_EQ(search.encoder.bytes, greedy.encoder.bytes);
  EXPECT_GE(search.score, greedy.score);
  EXPECT_GT(search.cycles_per_token(), greedy.cycles_per_token());
  EXPECT_LT(search.cycles_per_token(), 4 * greedy.cycles_per_token());
  EXPECT_LT(search.bytes_per_token(), 4 * greedy.bytes_per_token());
  EXPECT_TRUE(greedy.copies.empty());
}

TEST(Seq2SeqGeneration, RefusesMoreThanTheNetworkHas) {
  test::Random random(5);
  const hw::Machine machine = hw::find_machine("transformer");
  test::RandomSeq2Seq made(random);
  const model::IntegerSeq2Seq network = made.integers(machine);
  Seq2SeqTask task;
  task.source = Ids(13, 2);
  task.tokens = 3;
  const auto error = [&] {
    return input_error_of([&] { static_cast<void>(generate(machine, network, task)); });
  };
  EXPECT_EQ(error(), "--prompt: found 13, expected 1 to 12 tokens");
  task.source.resize(2);
  task.tokens = 13;
  EXPECT_EQ(error(), "--output-tokens: found 13, expected 1 to 12 tokens");
  task.tokens = 2;
  task.beams = network.decoder.shape.vocabulary;
  expect_contains(error(), "half of the vocabulary");
}

}  // namespace
}  // namespace systole::testbench

#include "testbench/generation/llama_generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/build/llama_graph.h"
#include "model/format/safetensors.h"
#include "model/graph/reference.h"
#include "model/integer/integer_network.h"
#include "model/quantise/llama_quantiser.h"
#include "support/network/tiny_llama.h"
#include "support/program/bad_input.h"
#include "support/temp_directory.h"
#include "tests/testbench/generation/reference_text.h"

namespace systole::testbench {
namespace {

using test::TinyLlama;
using Ids = std::vector<std::int32_t>;

hw::Machine wide_machine(const char* name) {
  hw::Machine machine = hw::find_machine(name);
  machine.datapath.residual_bits = 24;
  return machine;
}

struct Tiny {
  TempDirectory directory;
  model::LlamaCheckpoint real;
  model::IntegerLlama llama;

  explicit Tiny(const hw::Machine& machine) {
    real = TinyLlama::load(TinyLlama::write(directory.path("llama.safetensors")));
    model::QuantiserOptions options;
    options.datapath = machine.datapath;
    llama = model::quantise(real, TinyLlama::texts(3, 20), options);
  }
};

/// Values of a tensor when a prompt is read, all tokens at once.
Ids values_of(const model::IntegerLlama& llama, const Ids& text, const std::string& name) {
  const model::Graph graph =
      model::make_llama_graph(llama, static_cast<std::uint32_t>(text.size()));
  model::Reference reference(graph);
  reference.set_input("embedding", model::embed_tokens(llama, text));
  reference.run();
  return reference.values(name);
}

class LlamaText : public testing::TestWithParam<const char*> {};

// Rows of the steps are those of the text read at once.
TEST_P(LlamaText, WritesItsTokensLogitsAndTensors) {
  const hw::Machine machine = wide_machine(GetParam());
  const Tiny tiny(machine);
  LlamaTask task;
  task.prompt = {3, 7, 40};
  task.tokens = 4;
  task.keep_logits = true;
  task.tensors = "blocks\\.1\\.mlp\\.residual|output";
  const LlamaGeneration generation = test::generate_once(machine, tiny.llama, task);
  const std::string path = tiny.directory.path("out.safetensors");
  write_outputs(path, task, generation);
  const model::Safetensors file = model::Safetensors::open(path);
  EXPECT_EQ(file.copy<std::int32_t>("input_ids"), task.prompt);
  EXPECT_EQ(file.copy<std::int32_t>("tokens"), generation.tokens);
  EXPECT_EQ(file.copy<std::int32_t>("positions"), (Ids{0, 1, 2, 3, 4, 5}));
  const Ids logits = file.copy<std::int32_t>("logits");
  ASSERT_EQ(logits.size(), 6U * TinyLlama::kVocabulary);
  Ids text = task.prompt;
  text.insert(text.end(), generation.tokens.begin(), generation.tokens.end() - 1);
  for (std::size_t step = 0; step < text.size(); ++step) {
    const Ids begun(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(step + 1));
    const Ids all = values_of(tiny.llama, begun, "logits");
    const Ids expected(all.end() - TinyLlama::kVocabulary, all.end());
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(step * TinyLlama::kVocabulary);
    EXPECT_EQ(Ids(row, row + TinyLlama::kVocabulary), expected) << step;
  }
  ASSERT_TRUE(file.has("blocks.1.mlp.residual"));
  EXPECT_EQ(file.tensor("blocks.1.mlp.residual").shape,
            (std::vector<std::size_t>{6, 1, TinyLlama::kWidth}));
  EXPECT_EQ(file.copy<std::int32_t>("blocks.1.mlp.residual"),
            values_of(tiny.llama, text, "blocks.1.mlp.residual"));
}

TEST_P(LlamaText, IsThatOfTheReference) {
  const hw::Machine machine = wide_machine(GetParam());
  const Tiny tiny(machine);
  LlamaTask task;
  task.prompt = {3, 7, 40, 22, 1};  // 7 has the outlier
  task.tokens = 6;
  task.check = true;
  const LlamaGeneration generation = test::generate_once(machine, tiny.llama, task);
  EXPECT_EQ(generation.measurement.mismatches(), 0U) << generation.measurement.result.check.first;
  EXPECT_GT(generation.measurement.result.check.bytes, 10000U);
  EXPECT_EQ(generation.tokens, test::text_of(tiny.llama, task.prompt, task.tokens));
  EXPECT_EQ(generation.chunk, task.prompt.size());
  EXPECT_EQ(generation.measurement.result.cycles.size(), task.tokens);
  // The phases are all of the last step.
  std::uint64_t cycles = 0;
  for (const std::uint64_t phase : generation.phases) {
    EXPECT_GT(phase, 0U);
    cycles += phase;
  }
  EXPECT_LE(cycles, generation.measurement.result.cycles.back());
  EXPECT_GT(cycles, generation.measurement.result.cycles.back() * 8 / 10);
  EXPECT_NEAR(generation.tokens_per_second() * generation.generation_seconds(), 5.0, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Machines, LlamaText, testing::Values("transformer", "tiny"));

TEST(LlamaText, EndsWithTheTokenThatEndsIt) {
  const hw::Machine machine = wide_machine("transformer");
  const Tiny tiny(machine);
  LlamaTask task;
  task.prompt = {3, 12, 40};
  task.tokens = 5;
  const Ids all = test::generate_once(machine, tiny.llama, task).tokens;
  ASSERT_EQ(all.size(), 5U);
  task.end = all[2];
  const std::size_t first =
      static_cast<std::size_t>(std::find(all.begin(), all.end(), task.end) - all.begin());
  const LlamaGeneration ended = test::generate_once(machine, tiny.llama, task);
  EXPECT_EQ(ended.tokens.size(), first + 1);
  EXPECT_EQ(ended.tokens.back(), task.end);
}

TEST(LlamaEvaluation, HasTheBitsOfTheReferenceNearby) {
  const hw::Machine machine = wide_machine("transformer");
  const Tiny tiny(machine);
  const Ids text = TinyLlama::texts(1, 45, 8).front();
  const LlamaEvaluation at_once = evaluate(tiny.llama, &tiny.real, text, 45, 256, {});
  EXPECT_EQ(at_once.tokens, 44U);
  EXPECT_NEAR(at_once.bits, at_once.reference_bits, 0.06 * at_once.reference_bits);
  EXPECT_NE(at_once.bits, at_once.reference_bits);
  EXPECT_GT(at_once.same, 30U);
  // Windows begin anew: of 45 tokens in windows of 10 five are not compared.
  const LlamaEvaluation windows = evaluate(tiny.llama, nullptr, text, 45, 10, {});
  EXPECT_EQ(windows.tokens, 40U);
  EXPECT_EQ(windows.reference_bits, 0.0);
  double bits = 0;
  for (std::size_t first = 0; first < 45; first += 10) {
    const Ids part(
        text.begin() + static_cast<std::ptrdiff_t>(first),
        text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(45, first + 10)));
    const LlamaEvaluation one = evaluate(tiny.llama, nullptr, part, part.size(), 256, {});
    bits += one.bits * static_cast<double>(one.tokens);
  }
  EXPECT_NEAR(windows.bits, bits / 40, 1e-9);
}

/// Ids 0 to 63 are letters of the alphabet of bytes from '0' on; 7 is a control token.
std::string tiny_tokeniser() {
  nlohmann::json tokens = nlohmann::json::array();
  for (int id = 0; id < 64; ++id) tokens.push_back(std::string(1, static_cast<char>('0' + id)));
  tokens[7] = "<|seven|>";
  return nlohmann::json{{"kind", "byte_pairs"},
                        {"digits_alone", true},
                        {"tokens", tokens},
                        {"merges", nlohmann::json::array()},
                        {"control", {7}}}
      .dump();
}

TEST(LlamaProgram, GoesFromANetworkToText) {
  const TempDirectory directory;
  const std::string real = directory.path("l.safetensors"), ids = directory.path("ids.safetensors"),
                    text = directory.path("text.txt"),
                    integer = directory.path("l.int8.safetensors");
  TinyLlama::write(real, {}, tiny_tokeniser());
  directory.write("text.txt", "ABCDabcd<|seven|>XYZefghijkl0123456AFHKOPQS[]^_`");
  output_of({"quantise", real, "-c", text, "-o", integer});
  const nlohmann::json document =
      document_of(output_of({"generate", "--model", integer, "--prompt", "A<|seven|>b1", "-n", "3",
                             "--check", "--json"}));
  EXPECT_EQ(document["prompt_tokens"], 4);
  EXPECT_EQ(document["tokens"].size(), 3U);
  EXPECT_EQ(document["mismatched_bytes"], 0);
  EXPECT_EQ(document["prompt"], "A<|seven|>b1");
  EXPECT_FALSE(document["text"].get<std::string>().empty());
  const std::string shown =
      output_of({"generate", "--model", integer, "--prompt", "A<|seven|>b1", "-n", "3"});
  EXPECT_EQ(shown.rfind("A<|seven|>b1" + document["text"].get<std::string>() + "\n", 0), 0U);
  EXPECT_NE(shown.find("tokens/s"), std::string::npos);
  const nlohmann::json bits =
      document_of(output_of({"generate", "--model", integer, "--evaluate", "20", "--text", text,
                             "--checkpoint", real, "--json"}));
  EXPECT_EQ(bits["tokens"], 19);
  EXPECT_GT(bits["float32_bits_per_token"], 0.0);

  // In real numbers it is for a ring.
  const nlohmann::json ring =
      document_of(output_of({"generate", "--cores", "2", "--model", real, "--prompt",
                             "A<|seven|>b1", "-n", "6", "--check", "--json"}));
  EXPECT_EQ(ring["input_tokens"], 4);
  EXPECT_EQ(ring["tokens"].size(), 6U);
  EXPECT_GE(ring["same_in_float32"], 5);
  EXPECT_EQ(ring["prompt"], "A<|seven|>b1");
  const nlohmann::json same = document_of(output_of(
      {"generate", "--cores", "3", "--model", real, "--evaluate", "39", "--text", text, "--json"}));
  EXPECT_EQ(same["tokens"], 39);
  EXPECT_LT(same["mean_error"], 0.01);

  // All tokens at once, and by steps, from a file of ids.
  model::write_safetensors(ids, {model::make_tensor("input_ids", model::FileDtype::kI64, {1, 6},
                                                    std::vector<std::int64_t>{1, 7, 9, 4, 40, 3})});
  const Words run = {"run",     "-m",    "transformer", "--set", "datapath.residual_bits=24",
                     "--model", integer, "-i",          ids,     "--check",
                     "--json"};
  EXPECT_EQ(document_of(output_of(run))["mismatched_bytes"], 0);
  Words steps = run;
  steps.insert(steps.end(), {"--decode", "--past", "4"});
  const nlohmann::json decoded = document_of(output_of(steps));
  EXPECT_EQ(decoded["mismatched_bytes"], 0);
  EXPECT_EQ(decoded["images"], 2);
}

}  // namespace
}  // namespace systole::testbench

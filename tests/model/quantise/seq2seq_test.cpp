#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "model/build/decode_graph.h"
#include "model/build/seq2seq_graph.h"
#include "model/checkpoint/seq2seq_checkpoint.h"
#include "model/float/float_seq2seq.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "support/input_error.h"
#include "support/network/random_seq2seq.h"
#include "support/paths.h"
#include "support/temp_directory.h"

namespace systole::model {
namespace {

using Ids = std::vector<std::int32_t>;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Seq2SeqCheckpoint shipped() {
  return load_seq2seq_checkpoint(source_path("traces/models/vowels.safetensors"));
}

// transformers computes the same logits of the shipped network
// (script/train/make_seq2seq_goldens.py).
TEST(Seq2Seq, HasTransformersLogits) {
  const Seq2SeqCheckpoint checkpoint = shipped();
  const TextPairs texts =
      load_text_pairs(source_path("traces/data/vowels.safetensors"), checkpoint.encoder.shape,
                      checkpoint.decoder.shape, checkpoint.tokens.begin);
  const Safetensors golden =
      Safetensors::open(source_path("tests/golden/seq2seq/vowels.safetensors"));
  const std::vector<std::size_t> shape = golden.tensor("logits").shape;
  const std::vector<float> logits = golden.copy<float>("logits");
  const FloatSeq2Seq real(checkpoint);
  for (std::size_t i = 0; i < shape[0]; ++i) {
    const FloatRows found =
        real.logits(texts.source.text(i).trimmed().ids, texts.target.text(i).trimmed().ids);
    ASSERT_EQ(found.size(), texts.target.valid[i] * shape[2]);
    for (std::size_t j = 0; j < found.size(); ++j) {
      ASSERT_NEAR(found[j], logits[i * shape[1] * shape[2] + j], 1e-4) << i << ", " << j;
    }
  }
}

// A token attends to all states of the encoder, also to those after its place.
TEST(Seq2Seq, RealTokensSeeTheWholeMemory) {
  test::Random random(13);
  for (int round = 0; round < 10; ++round) {
    test::RandomSeq2Seq made(random);
    const TextCheckpoint& decoder = made.real().decoder;
    const FloatBlocks blocks(decoder.shape.encoder, decoder.blocks,
                             {decoder.norm_epsilon, decoder.gelu});
    const std::size_t width = decoder.shape.encoder.width;
    FloatRows stream(width), memory(width);
    for (std::size_t i = 0; i < width; ++i) {
      stream[i] = std::sin(static_cast<double>(i));
      memory[i] = std::cos(static_cast<double>(i * 3));
    }
    const FloatRows one = blocks.run(stream, nullptr, &memory);
    for (std::size_t i = 0; i < width; ++i) memory.push_back(-2 * memory[i]);
    EXPECT_NE(blocks.run(stream, nullptr, &memory), one) << round;
    // Twice the same states are the same states.
    FloatRows same(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(width));
    const FloatRows again = same;
    same.insert(same.end(), again.begin(), again.end());
    const FloatRows doubled = blocks.run(stream, nullptr, &same);
    for (std::size_t i = 0; i < width; ++i) EXPECT_NEAR(doubled[i], one[i], 1e-12);
  }
}

TEST(Seq2Seq, StepsGiveWhatAllTokensAtOnceGive) {
  test::Random random(7);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    hw::Machine machine = test::random_machine(random);
    test::RandomSeq2Seq made(random);
    const IntegerSeq2Seq network = made.integers(machine);
    const std::uint32_t count = test::between(random, 1, 12), steps = test::between(random, 1, 12),
                        sequences = test::between(random, 1, 3);
    const Ids source = made.words(count, network.encoder.shape.vocabulary);
    const Graph encoder = make_seq2seq_encoder_graph(network, count);
    Reference encoding(encoder);
    encoding.set_input(kSourceEmbedding, embed_tokens(network.encoder, source));
    encoding.run();
    Graph decoder = make_seq2seq_decode_graph(network, steps, count, sequences);
    decoder.tensors[find_tensor(decoder, kMemoryTensor)].data = encoding.bytes(kMemoryTensor);
    std::vector<Ids> texts;
    for (std::uint32_t s = 0; s < sequences; ++s) {
      texts.push_back(made.words(steps, network.decoder.shape.vocabulary));
    }
    std::vector<Ids> expected;
    for (const Ids& text : texts) {
      const Graph graph = make_seq2seq_graph(network, count, steps);
      Reference whole(graph);
      whole.set_input(kSourceEmbedding, embed_pair(network, source, text));
      whole.run();
      expected.push_back(whole.values("logits"));
    }
    Reference reference(decoder);
    const std::size_t columns = network.decoder.shape.vocabulary;
    for (std::uint32_t t = 0; t < steps; ++t) {
      move_to_token(decoder, t);
      Ids embedding;
      for (const Ids& text : texts) {
        const Ids row = embed_tokens(network.decoder, {text[t]}, t);
        embedding.insert(embedding.end(), row.begin(), row.end());
      }
      reference.set_input(kTargetEmbedding, embedding);
      reference.run();
      const Ids logits = reference.values("logits");
      for (std::size_t s = 0; s < sequences; ++s) {
        const auto row = expected[s].begin() + static_cast<std::ptrdiff_t>(t * columns);
        EXPECT_TRUE(std::equal(row, row + static_cast<std::ptrdiff_t>(columns),
                               logits.begin() + static_cast<std::ptrdiff_t>(s * columns)))
            << "token " << t << " of text " << s;
      }
    }
  }
}

TEST(Seq2Seq, PaddingOfEitherTextChangesNothing) {
  test::Random random(17);
  for (int round = 0; round < 40; ++round) {
    const hw::Machine machine = test::random_machine(random);
    test::RandomSeq2Seq made(random);
    const IntegerSeq2Seq network = made.integers(machine);
    const std::uint32_t source = test::between(random, 1, 8), target = test::between(random, 1, 8),
                        more = test::between(random, 0, 4), later = test::between(random, 0, 4);
    Ids words = made.words(source, network.encoder.shape.vocabulary),
        text = made.words(target, network.decoder.shape.vocabulary);
    const auto logits = [&](bool narrowed) {
      Graph graph = make_seq2seq_graph(network, static_cast<std::uint32_t>(words.size()),
                                       static_cast<std::uint32_t>(text.size()));
      if (narrowed) attend_to_source(graph, source);
      Reference reference(graph);
      reference.set_input(kSourceEmbedding, embed_pair(network, words, text));
      reference.run();
      return reference.values("logits");
    };
    const Ids expected = logits(false);
    for (const std::int32_t id : made.words(more, network.encoder.shape.vocabulary)) {
      words.push_back(id);
    }
    for (const std::int32_t id : made.words(later, network.decoder.shape.vocabulary)) {
      text.push_back(id);
    }
    const Ids found = logits(true);
    ASSERT_GE(found.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin())) << round;
  }
}

TEST(Seq2Seq, IsTheSameAfterAFile) {
  test::Random random(9);
  const TempDirectory directory;
  for (int round = 0; round < 20; ++round) {
    const hw::Machine machine = test::random_machine(random);
    test::RandomSeq2Seq made(random);
    const std::string first = directory.path("a.safetensors"),
                      second = directory.path("b.safetensors");
    const IntegerSeq2Seq network = made.integers(machine);
    write_network(network, first);
    EXPECT_EQ(model_kind(first), ModelKind::kIntegerSeq2Seq);
    const IntegerSeq2Seq read = load_integer_seq2seq(first);
    write_network(read, second);
    EXPECT_EQ(bytes_of(first), bytes_of(second));
    EXPECT_EQ(read.tokens.end, network.tokens.end);
    const Ids source = made.words(4, network.encoder.shape.vocabulary),
              target = made.words(5, network.decoder.shape.vocabulary);
    const auto logits = [&](const IntegerSeq2Seq& of) {
      const Graph graph = make_seq2seq_graph(of, 4, 5);
      Reference reference(graph);
      reference.set_input(kSourceEmbedding, embed_pair(of, source, target));
      reference.run();
      return reference.values("logits");
    };
    EXPECT_EQ(logits(read), logits(network));
  }
}

// Tokens that are right after the right ones before them: 93.05 % by transformers, too.
TEST(Seq2Seq, LosesLittleToIntegers) {
  const Seq2SeqCheckpoint checkpoint = shipped();
  const auto texts = [&](const char* file) {
    return load_text_pairs(source_path("traces/" + std::string(file)), checkpoint.encoder.shape,
                           checkpoint.decoder.shape, checkpoint.tokens.begin);
  };
  const IntegerSeq2Seq network = quantise(checkpoint, texts("data/vowels_calibration.safetensors"));
  const TextPairs pairs = texts("data/vowels.safetensors");
  const FloatSeq2Seq real(checkpoint);
  double largest = 0, error = 0;
  std::size_t same = 0, all = 0;
  for (std::size_t i = 0; i < 25; ++i) {
    const Ids source = pairs.source.text(i).trimmed().ids,
              target = pairs.target.text(i).trimmed().ids;
    const Graph graph = make_seq2seq_graph(network, static_cast<std::uint32_t>(source.size()),
                                           static_cast<std::uint32_t>(target.size()));
    Reference reference(graph, {true, false});
    reference.set_input(kSourceEmbedding, embed_pair(network, source, target));
    reference.run();
    const Ids codes = reference.values("logits");
    const FloatRows logits = real.logits(source, target);
    for (std::size_t j = 0; j < logits.size(); ++j) {
      largest = std::max(largest, std::fabs(logits[j]));
      error += std::fabs(logits[j] - codes[j] * network.logit_scale) /
               static_cast<double>(logits.size());
    }
    for (std::size_t t = 0; t < target.size(); ++t, ++all) {
      const auto best = [&](const auto& values) {
        const auto row = values.begin() + static_cast<std::ptrdiff_t>(t * 128);
        return std::max_element(row, row + 128) - row;
      };
      same += best(logits) == best(codes) ? 1 : 0;
    }
  }
  EXPECT_LT(error / 25, 0.02 * largest);
  EXPECT_GT(static_cast<double>(same), 0.97 * static_cast<double>(all));
}

TEST(Seq2Seq, RefusesCheckpointsThatAreNone) {
  const TempDirectory directory;
  const std::string path = directory.path("m.safetensors");
  const Safetensors file = Safetensors::open(source_path("traces/models/vowels.safetensors"));
  /// The shipped one, but for what `change` does.
  const auto expect = [&](const auto& change, const std::vector<std::string>& words) {
    std::vector<TensorData> tensors;
    for (const std::string& name : file.names()) {
      const TensorView& view = file.tensor(name);
      tensors.push_back(
          make_tensor(name, FileDtype::kF16, view.shape, file.copy<std::uint16_t>(name)));
    }
    std::map<std::string, std::string> metadata = file.metadata();
    change(tensors, metadata);
    write_safetensors(path, tensors, metadata);
    const std::string error =
        input_error_of([&] { static_cast<void>(load_seq2seq_checkpoint(path)); });
    for (const std::string& word : words) expect_contains(error, word);
  };
  expect([](auto&, auto& metadata) { metadata.erase("begin"); },
         {"m.safetensors", "expected metadata 'begin' or decoder_start_token_id in config.json"});
  expect([](auto&, auto& metadata) { metadata["end"] = "128"; }, {"end", "0 to 127"});
  const auto without = [](const char* part) {
    return [part](auto& tensors, auto&) {
      tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                   [&](const TensorData& tensor) {
                                     return tensor.name.find(part) != std::string::npos;
                                   }),
                    tensors.end());
    };
  };
  expect(without("h.1.crossattention.q_attn.weight"),
         {"decoder.transformer.h.1.crossattention.q_attn.weight"});
  expect(without("crossattention"), {"expected an encoder-decoder of BERT and GPT-2"});
  expect(without("encoder.layer.1.output.dense.bias"),
         {"encoder.encoder.layer.1.output.dense.bias"});
}

// The file of a network, but for what `from` becomes.
TEST(Seq2Seq, RefusesFilesOfOtherNetworks) {
  test::Random random(17);
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  test::RandomSeq2Seq made(random);
  write_network(made.integers(test::random_machine(random)), path);
  const std::string whole = bytes_of(path);
  const auto expect = [&](const std::string& from, const std::string& to, const std::string& word) {
    ASSERT_EQ(from.size(), to.size()) << "the header keeps its length";
    std::string changed = whole;
    for (std::size_t at = 0; (at = changed.find(from, at)) != std::string::npos;) {
      changed.replace(at, from.size(), to);
    }
    ASSERT_NE(changed, whole);
    std::ofstream(path, std::ios::binary) << changed;
    expect_contains(input_error_of([&] { static_cast<void>(load_integer_seq2seq(path)); }), word);
  };
  const auto quoted = [](const std::string& text) { return "\\\"" + text + "\\\""; };
  expect(quoted("begin"), quoted("began"), "architecture 'begin': expected a token from 0 to");
  expect(quoted("end") + ":1", quoted("end") + ":x", "n.safetensors");
  expect("decoder_input_ids", "decoder_input_idx", "expected the words of decoder_input_ids");
}

TEST(Seq2Seq, RefusesTextsThatAreNoPairs) {
  const TempDirectory directory;
  const std::string path = directory.path("t.safetensors");
  const Seq2SeqCheckpoint checkpoint = shipped();
  const auto expect = [&](const std::vector<std::size_t>& source,
                          const std::vector<std::size_t>& target, std::int32_t first,
                          const std::vector<std::string>& words) {
    const auto ids = [](const char* name, const std::vector<std::size_t>& shape, std::int32_t id) {
      return make_tensor(name, FileDtype::kI32, shape, Ids(shape[0] * shape[1], id));
    };
    write_safetensors(path,
                      {ids("input_ids", source, 65), ids("decoder_input_ids", target, first)});
    const std::string error = input_error_of([&] {
      static_cast<void>(load_text_pairs(path, checkpoint.encoder.shape, checkpoint.decoder.shape,
                                        checkpoint.tokens.begin));
    });
    for (const std::string& word : words) expect_contains(error, word);
  };
  expect({2, 3}, {3, 4}, 1, {"t.safetensors", "decoder_input_ids", "3 texts, expected 2"});
  expect({2, 3}, {2, 4}, 5, {"decoder_input_ids", "row 0 begins with 5, expected 1"});
  expect({2, 3}, {2, 40}, 1, {"decoder_input_ids", "40 tokens, but the network has 33"});
}

}  // namespace
}  // namespace systole::model

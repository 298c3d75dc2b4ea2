#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/format/safetensors_writer.h"
#include "tests/support/random/seeded_tensors.h"

namespace systole::test {

/// A checkpoint of a small text network with seeded weights under Hugging Face's names: two blocks
/// of width 12 in 3 heads, MLP 20, vocabulary 30, 11 positions. Tests spoil parts of it.
class TinyText : public SeededTensors {
 public:
  static constexpr std::size_t kWidth = 12, kHeads = 3, kHidden = 20, kVocabulary = 30,
                               kPositions = 11, kLayers = 2, kClasses = 5;

  static TinyText bert(const std::string& prefix = "bert.") {
    TinyText text;
    const std::string embeddings = prefix + "embeddings.";
    text.add(embeddings + "word_embeddings.weight", {kVocabulary, kWidth}, 1.0);
    text.add(embeddings + "position_embeddings.weight", {kPositions, kWidth}, 0.5);
    text.add(embeddings + "token_type_embeddings.weight", {2, kWidth}, 0.3);
    text.norm(embeddings + "LayerNorm");
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string layer = prefix + "encoder.layer." + std::to_string(i) + ".";
      for (const char* part : {"query", "key", "value"}) {
        text.add_linear(layer + "attention.self." + part, kWidth, kWidth);
      }
      text.add_linear(layer + "attention.output.dense", kWidth, kWidth);
      text.norm(layer + "attention.output.LayerNorm");
      text.add_linear(layer + "intermediate.dense", kHidden, kWidth);
      text.add_linear(layer + "output.dense", kWidth, kHidden);
      text.norm(layer + "output.LayerNorm");
    }
    return text;
  }

  /// A BERT that tells classes of texts apart.
  static TinyText classifier(const std::string& prefix = "bert.") {
    TinyText text = bert(prefix);
    text.add(prefix + "pooler.dense.weight", {kWidth, kWidth}, 0.6);
    text.add(prefix + "pooler.dense.bias", {kWidth}, 0.3);
    text.add("classifier.weight", {kClasses, kWidth}, 0.8);
    text.add("classifier.bias", {kClasses}, 0.2);
    return text;
  }

  static TinyText gpt2(const std::string& prefix = "transformer.") {
    TinyText text;
    text.add(prefix + "wte.weight", {kVocabulary, kWidth}, 1.0);
    text.add(prefix + "wpe.weight", {kPositions, kWidth}, 0.5);
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string layer = prefix + "h." + std::to_string(i) + ".";
      text.norm(layer + "ln_1");
      // Conv1D: [inputs, outputs].
      text.conv1d(layer + "attn.c_attn", 3 * kWidth, kWidth);
      text.conv1d(layer + "attn.c_proj", kWidth, kWidth);
      text.norm(layer + "ln_2");
      text.conv1d(layer + "mlp.c_fc", kHidden, kWidth);
      text.conv1d(layer + "mlp.c_proj", kWidth, kHidden);
    }
    text.norm(prefix + "ln_f");
    return text;
  }

  /// A file of `count` texts of `length` seeded token ids.
  static const std::string& write_ids(const std::string& path, std::size_t count,
                                      std::size_t length, std::uint32_t seed = 3) {
    std::mt19937 engine(seed);
    std::vector<std::int64_t> ids(count * length);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(engine() % kVocabulary);
    model::write_safetensors(
        path, {model::make_tensor("input_ids", model::FileDtype::kI64, {count, length}, ids)});
    return path;
  }

 private:
  TinyText() { metadata = {{"h", std::to_string(kHeads)}}; }

  void norm(const std::string& name) { add_norm(name, kWidth); }
  void conv1d(const std::string& name, std::size_t outputs, std::size_t inputs) {
    add(name + ".weight", {inputs, outputs}, 0.5);
    add(name + ".bias", {outputs}, 0.2);
  }
};

}  // namespace systole::test

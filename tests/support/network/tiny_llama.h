#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/checkpoint/llama_checkpoint.h"
#include "model/format/safetensors_writer.h"
#include "model/network/network_writer.h"

namespace systole::test {

/// A Llama of real numbers with seeded weights: two blocks of width 32, 8 heads of 4 on 2 of keys,
/// MLP 64, vocabulary 64, 50 positions. As in published ones an input of the MLP's second product
/// is a thousand times as large as usual where one token is in the text.
class TinyLlama {
 public:
  static constexpr std::uint32_t kWidth = 32, kHeads = 8, kKvHeads = 2, kHeadWidth = 4,
                                 kHidden = 64, kVocabulary = 64, kPositions = 50, kLayers = 2;

  /// `interleaved`: neighbouring features turn, else those half a head apart; `tied`: logits by the
  /// table of words; `bias`: of queries, keys and values.
  static std::string write(const std::string& path, bool interleaved = true, bool tied = true,
                           bool bias = false, const std::string& tokeniser = "") {
    return TinyLlama(interleaved, tied, bias, tokeniser).write_to(path);
  }
  static model::LlamaCheckpoint load(const std::string& path) {
    return model::read_llama_checkpoint(model::NetworkFile(model::Safetensors::open(path)));
  }

  /// `count` texts of `length` seeded ids.
  static std::vector<std::vector<std::int32_t>> texts(std::size_t count, std::size_t length,
                                                      std::uint32_t seed = 5) {
    std::mt19937 engine(seed);
    std::vector<std::vector<std::int32_t>> texts(count, std::vector<std::int32_t>(length));
    for (auto& text : texts) {
      for (std::int32_t& id : text) id = static_cast<std::int32_t>(engine() % kVocabulary);
    }
    return texts;
  }

 private:
  using Value = model::NetworkWriter::Value;

  TinyLlama(bool interleaved, bool tied, bool bias, const std::string& tokeniser)
      : interleaved_(interleaved), tied_(tied), bias_(bias) {
    writer_.set_architecture({{"family", "llama"}});
    if (!tokeniser.empty()) writer_.set_tokeniser(tokeniser);
  }

  std::string constant(const std::string& name, const std::vector<std::size_t>& shape,
                       double deviation, double mean = 0.0) {
    std::size_t count = 1;
    for (const std::size_t size : shape) count *= size;
    std::normal_distribution<double> normal(mean, deviation);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(normal(engine_));
    // The word whose rows make outliers.
    if (name == "word.table") {
      for (std::size_t c = 0; c < kWidth; ++c) values[7 * kWidth + c] = c == 3 ? 40.0F : 0.01F;
    }
    return writer_.constant(model::make_tensor(name, model::FileDtype::kF32, shape, values));
  }
  static Value value(std::uint32_t columns) { return {"f32", {model::kTokens, columns}}; }
  std::string linear(const std::string& name, const std::string& x, std::uint32_t outputs,
                     std::uint32_t inputs, double gain, bool bias = false) {
    std::vector<std::string> operands = {
        x, constant(name + ".weight", {outputs, inputs}, gain / std::sqrt(double(inputs)))};
    if (bias) operands.push_back(constant(name + ".bias", {outputs}, 0.3));
    return writer_.node(name, "linear", operands, value(outputs));
  }
  std::string norm(const std::string& name, const std::string& x) {
    return writer_.node(name, "rms_norm", {x, constant(name + ".weight", {kWidth}, 0.2, 1.0)},
                        value(kWidth), {{"epsilon", 1e-5}});
  }
  std::string rotated(const std::string& name, const std::string& x, std::uint32_t heads) {
    const std::uint32_t width = heads * kHeadWidth;
    return writer_.node(name + "_rope", "rope", {linear(name, x, width, kWidth, 1.5, bias_)},
                        value(width),
                        {{"heads", heads},
                         {"base", 1000.0},
                         {"interleaved", interleaved_},
                         {"positions", kPositions}});
  }

  std::string write_to(const std::string& path) {
    const std::string ids = writer_.input("input_ids", {"i64", {model::kTokens}});
    const std::string table = constant("word.table", {kVocabulary, kWidth}, 1.0);
    std::string x = writer_.node("word", "embedding", {ids, table}, value(kWidth));
    for (std::uint32_t i = 0; i < kLayers; ++i) {
      const std::string p = "blocks." + std::to_string(i) + ".";
      const std::string in = norm(p + "norm1", x);
      const std::string query = rotated(p + "attn.query", in, kHeads);
      const std::string key = rotated(p + "attn.key", in, kKvHeads);
      const std::string values =
          linear(p + "attn.value", in, kKvHeads * kHeadWidth, kWidth, 1.0, bias_);
      const std::string context = writer_.node(
          p + "attn.context", "attention", {query, key, values}, value(kHeads * kHeadWidth),
          {{"heads", kHeads}, {"causal", true}, {"kv_heads", kKvHeads}});
      x = writer_.node(p + "attn.residual", "add",
                       {x, linear(p + "attn.proj", context, kWidth, kWidth, 0.5)}, value(kWidth));
      const std::string middle = norm(p + "norm2", x);
      const std::string gate =
          writer_.node(p + "mlp.activation", "silu",
                       {linear(p + "mlp.gate", middle, kHidden, kWidth, 2.0)}, value(kHidden));
      const std::string product =
          writer_.node(p + "mlp.product", "multiply",
                       {gate, linear(p + "mlp.up", middle, kHidden, kWidth, 2.0)}, value(kHidden));
      x = writer_.node(p + "mlp.residual", "add",
                       {x, linear(p + "mlp.down", product, kWidth, kHidden, 0.3)}, value(kWidth));
    }
    x = norm("norm", x);
    if (tied_) {
      x = writer_.node("logits", "linear", {x, table}, value(kVocabulary));
    } else {
      x = linear("logits", x, kVocabulary, kWidth, 2.0);
    }
    writer_.write(path, x);
    return path;
  }

  model::NetworkWriter writer_{"tiny-llama", "seeded"};
  std::mt19937 engine_{11};
  bool interleaved_, tied_, bias_;
};

}  // namespace systole::test

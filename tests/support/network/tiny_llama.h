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

  struct Form {
    bool interleaved = true;  ///< neighbouring features turn, else those half a head apart
    bool tied = true;         ///< logits by the table of words
    bool bias = false;        ///< of queries, keys and values
    bool head_norms = false;
    std::uint32_t window = 0;
    std::vector<double> frequencies = {};
    std::string gelu = {};      ///< form of it in place of SiLU
    double word_factor = 1.0;   ///< of rows of the table of words
    std::uint32_t experts = 0;  ///< of which a token goes to two
  };
  static std::string write(const std::string& path, const Form& form,
                           const std::string& tokeniser = "") {
    return TinyLlama(form, tokeniser).write_to(path);
  }
  static std::string write(const std::string& path) { return write(path, Form()); }
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

  TinyLlama(const Form& form, const std::string& tokeniser) : form_(form) {
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
    std::string all = linear(name, x, width, kWidth, 1.5, form_.bias);
    if (form_.head_norms) {
      const std::string weight = constant(name + "_norm.weight", {kHeadWidth}, 0.4, 1.5);
      all = writer_.node(name + "_norm", "rms_norm", {all, weight}, value(width),
                         {{"epsilon", 1e-5}, {"heads", heads}});
    }
    nlohmann::ordered_json attributes = {{"heads", heads},
                                         {"base", 1000.0},
                                         {"interleaved", form_.interleaved},
                                         {"positions", kPositions}};
    if (!form_.frequencies.empty()) attributes["frequencies"] = form_.frequencies;
    return writer_.node(name + "_rope", "rope", {all}, value(width), attributes);
  }

  std::string gated(const std::string& name, const std::string& in) {
    const std::string gate =
        writer_.node(name + "activation", form_.gelu.empty() ? "silu" : "gelu",
                     {linear(name + "gate", in, kHidden, kWidth, 2.0)}, value(kHidden),
                     form_.gelu.empty() ? nlohmann::ordered_json::object()
                                        : nlohmann::ordered_json{{"form", form_.gelu}});
    return writer_.node(name + "product", "multiply",
                        {gate, linear(name + "up", in, kHidden, kWidth, 2.0)}, value(kHidden));
  }

  std::string write_to(const std::string& path) {
    const std::string ids = writer_.input("input_ids", {"i64", {model::kTokens}});
    const std::string table = constant("word.table", {kVocabulary, kWidth}, 1.0);
    std::string x = writer_.node("word", "embedding", {ids, table}, value(kWidth));
    if (form_.word_factor != 1.0) {
      x = writer_.node("scaled", "scale", {x}, value(kWidth), {{"factor", form_.word_factor}});
    }
    for (std::uint32_t i = 0; i < kLayers; ++i) {
      const std::string p = "blocks." + std::to_string(i) + ".";
      const std::string in = norm(p + "norm1", x);
      const std::string query = rotated(p + "attn.query", in, kHeads);
      const std::string key = rotated(p + "attn.key", in, kKvHeads);
      const std::string values =
          linear(p + "attn.value", in, kKvHeads * kHeadWidth, kWidth, 1.0, form_.bias);
      nlohmann::ordered_json attributes = {
          {"heads", kHeads}, {"causal", true}, {"kv_heads", kKvHeads}};
      if (form_.window != 0) attributes["window"] = form_.window;
      const std::string context =
          writer_.node(p + "attn.context", "attention", {query, key, values},
                       value(kHeads * kHeadWidth), attributes);
      x = writer_.node(p + "attn.residual", "add",
                       {x, linear(p + "attn.proj", context, kWidth, kWidth, 0.5)}, value(kWidth));
      const std::string middle = norm(p + "norm2", x);
      if (form_.experts == 0) {
        x = writer_.node(
            p + "mlp.residual", "add",
            {x, linear(p + "mlp.down", gated(p + "mlp.", middle), kWidth, kHidden, 0.3)},
            value(kWidth));
        continue;
      }
      const std::string shares = writer_.node(
          p + "mlp.shares", "route", {linear(p + "mlp.router", middle, form_.experts, kWidth, 2.0)},
          value(form_.experts), {{"active", 2}});
      for (std::uint32_t e = 0; e < form_.experts; ++e) {
        const std::string name = p + "mlp.expert" + std::to_string(e) + ".";
        const std::string weighed =
            writer_.node(name + "share", "weigh", {gated(name, middle), shares}, value(kHidden),
                         {{"expert", e}});
        x = writer_.node(name + "residual", "add",
                         {x, linear(name + "down", weighed, kWidth, kHidden, 0.3)}, value(kWidth));
      }
    }
    x = norm("norm", x);
    if (form_.tied) {
      x = writer_.node("logits", "linear", {x, table}, value(kVocabulary));
    } else {
      x = linear("logits", x, kVocabulary, kWidth, 2.0);
    }
    writer_.write(path, x);
    return path;
  }

  model::NetworkWriter writer_{"tiny-llama", "seeded"};
  std::mt19937 engine_{11};
  const Form form_;
};

}  // namespace systole::test

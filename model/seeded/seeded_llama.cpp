#include "model/seeded/seeded_llama.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "hw/function/rms_norm.h"
#include "hw/function/silu.h"
#include "model/quantise/quantise_layers.h"
#include "model/seeded/seeded_constants.h"

namespace systole::model {
namespace {

/// Of queries, keys, gates and what they gate: a quarter of the largest code, as kOperandDeviation.
constexpr double kWideDeviation = 8192.0;
/// Of a router's result, which is 1 in real values: shares neither equal nor one-hot.
constexpr double kRouterDeviation = 4096.0;
/// Root mean square of SiLU of a standard normal input.
constexpr double kSiluDeviation = 0.596;
/// The gate's product then deviates by about kOperandDeviation.
constexpr unsigned kProductShift = 20;

class SeededLlama {
 public:
  SeededLlama(const std::string& name, const LlamaShape& shape, std::uint32_t length,
              std::uint64_t seed, const hw::Machine::Datapath& datapath, bool with_weights,
              bool int4)
      : name_(name),
        shape_(shape),
        length_(length),
        seed_(seed),
        datapath_(datapath),
        with_weights_(with_weights),
        int4_(int4),
        quantiser_(name, datapath.multiplier_bits, true) {}

  IntegerLlama run() {
    IntegerLlama llama;
    llama.name = name_;
    llama.shape = shape_;
    llama.datapath = datapath_;
    llama.exp_to_code = quantiser_.exp_to_code(datapath_.softmax_bits);
    llama.embedding_scale = 1.0 / stream_deviation(datapath_);
    for (std::uint32_t i = 0; i < shape_.layers; ++i) {
      llama.blocks.push_back(block("blocks." + std::to_string(i) + "."));
    }
    llama.norm = norm();
    int4_ = false;
    llama.output =
        linear("output", shape_.width, shape_.vocabulary, kOperandDeviation, kWideDeviation, false);
    return llama;
  }

 private:
  IntegerLinear linear(const std::string& name, std::uint32_t inputs, std::uint32_t outputs,
                       double in, double out, bool bias) {
    return seeded_linear(quantiser_, {name, seed_, layers_++, with_weights_, bias, int4_}, inputs,
                         outputs, in, out);
  }

  IntegerRmsNorm norm() { return norm(shape_.width, kOperandDeviation); }
  IntegerRmsNorm norm(std::uint32_t width, double deviation) {
    SeededNumbers numbers(seed_, SeedPurpose::kConstants, layers_++);
    std::vector<double> gamma(width);
    for (double& weight : gamma) weight = numbers.uniform(0.8, 1.2);
    const double scale = 1.0 / deviation;
    hw::RmsNormConstants constants = hw::make_rms_norm_constants(gamma, scale);
    return {std::move(constants.multiplier), constants.shift, scale};
  }

  IntegerLlamaBlock block(const std::string& prefix) {
    const std::uint32_t width = shape_.width, hidden = shape_.hidden;
    const double branch = kBranchShare * stream_deviation(datapath_);
    const double turned = std::ldexp(kOperandDeviation, kLlamaRopeShift);
    constexpr double kIn = kOperandDeviation;
    IntegerLlamaBlock block;
    block.norm1 = norm();
    block.norm2 = norm();
    block.query =
        linear(prefix + "attn.q", width, shape_.query_width(), kIn, turned, shape_.qkv_bias);
    block.key = linear(prefix + "attn.k", width, shape_.kv_width(), kIn, turned, shape_.qkv_bias);
    if (shape_.head_norms) {
      block.query_norm = norm(shape_.head_width, turned);
      block.key_norm = norm(shape_.head_width, turned);
    }
    block.value = linear(prefix + "attn.v", width, shape_.kv_width(), kIn, kIn, shape_.qkv_bias);
    block.score = quantiser_.factor(prefix + "attn.scores", seeded_score_factor(shape_.head_width));
    const std::uint32_t keys = shape_.window == 0 ? length_ : std::min(length_, shape_.window);
    block.context = quantiser_.factor(
        prefix + "attn.context",
        std::ldexp(1.0 / mean_deviation(keys), -context_fraction_bits(datapath_)));
    block.proj = linear(prefix + "attn.proj", shape_.query_width(), width, kIn, branch, false);
    // The sum of experts, whose shares of a token add up to 1, is about as large as one MLP's.
    const double product =
        std::ldexp(kWideDeviation * kWideDeviation * kSiluDeviation, -int{kProductShift});
    const auto mlp = [&](const std::string& name) {
      IntegerExpert made;
      made.gate = linear(name + "gate", width, hidden, kIn, kWideDeviation, false);
      made.up = linear(name + "up", width, hidden, kIn, kWideDeviation, false);
      made.down = linear(name + "down", hidden, width, product, branch, false);
      return made;
    };
    if (shape_.experts == 0) {
      IntegerExpert one = mlp(prefix + "mlp.");
      block.gate = std::move(one.gate);
      block.up = std::move(one.up);
      block.down = std::move(one.down);
    } else {
      const bool int4 = std::exchange(int4_, false);
      block.router =
          linear(prefix + "mlp.router", width, shape_.experts, kIn, kRouterDeviation, false);
      int4_ = int4;
      block.router_scale = 1.0 / kRouterDeviation;
      for (std::uint32_t i = 0; i < shape_.experts; ++i) {
        block.experts.push_back(mlp(prefix + "mlp.expert" + std::to_string(i) + "."));
      }
    }
    block.silu = hw::make_silu_constants(1.0 / kWideDeviation, 1.0 / kWideDeviation,
                                         datapath_.multiplier_bits);
    if (shape_.gelu) {
      block.gelu = hw::make_gelu_constants(1.0 / kWideDeviation, 1.0 / kWideDeviation,
                                           datapath_.multiplier_bits);
    }
    block.product_shift = kProductShift;
    return block;
  }

  const std::string& name_;
  const LlamaShape& shape_;
  std::uint32_t length_;
  std::uint64_t seed_;
  const hw::Machine::Datapath& datapath_;
  bool with_weights_;
  bool int4_;  ///< of the layer that comes next
  LayerQuantiser quantiser_;
  std::uint32_t layers_ = 0;  ///< made so far
};

void check_llama_shape(const std::string& name, const LlamaShape& shape) {
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw hw::InputError(name + ": " + what);
  };
  require(shape.layers != 0 && shape.width != 0 && shape.hidden != 0 && shape.vocabulary != 0,
          "a count is 0, expected 1 or more");
  require(shape.kv_heads != 0 && shape.heads % shape.kv_heads == 0,
          std::to_string(shape.kv_heads) + " KV heads, expected a divisor of the " +
              std::to_string(shape.heads) + " heads");
  require(shape.experts == 0 ? shape.active_experts == 0
                             : shape.active_experts != 0 && shape.active_experts <= shape.experts,
          std::to_string(shape.active_experts) + " active of " + std::to_string(shape.experts) +
              " experts, expected 1 to all, or none of none");
  require(shape.head_width != 0 && shape.head_width % 2 == 0,
          "heads of " + std::to_string(shape.head_width) + " features, expected an even number");
}

}  // namespace

const std::vector<NamedLlama>& llama_shapes() {
  // Layers, width, heads, KV heads, head width, hidden, vocabulary, positions, window, base of
  // RoPE, bias of Q, K and V, tied, experts, those of a token. Source: the config.json of each.
  static const std::vector<NamedLlama> shapes = {
      // HuggingFaceTB/SmolLM2-135M.
      {"smollm2-135m", {30, 576, 9, 3, 64, 1536, 49152, 8192, 0, 1e5, false, true}},
      // Qwen/Qwen2.5-0.5B.
      {"qwen2.5-0.5b", {24, 896, 14, 2, 64, 4864, 151936, 32768, 0, 1e6, true, true}},
      // meta-llama/Llama-3.2-1B; the scaling of its RoPE moves no cycle and is left out.
      {"llama-3.2-1b", {16, 2048, 32, 8, 64, 8192, 128256, 131072, 0, 5e5, false, true}},
      // meta-llama/Meta-Llama-3-8B.
      {"llama-3-8b", {32, 4096, 32, 8, 128, 14336, 128256, 8192, 0, 5e5, false, false}},
      // mistralai/Mistral-7B-v0.1.
      {"mistral-7b", {32, 4096, 32, 8, 128, 14336, 32000, 32768, 4096, 1e4, false, false}},
      // Qwen/Qwen3-0.6B.
      {"qwen3-0.6b",
       {28, 1024, 16, 8, 128, 3072, 151936, 40960, 0, 1e6, false, true, 0, 0, false, true}},
      // google/gemma-2b.
      {"gemma-2b", {18, 2048, 8, 1, 256, 16384, 256000, 8192, 0, 1e4, false, true, 0, 0, true}},
      // openai/gpt-oss-20b, without its sinks, its windows in every other layer, its biases of
      // experts
      // and routers, its clamps in SwiGLU and the scaling of its RoPE.
      {"gpt-oss-20b", {24, 2880, 64, 8, 64, 2880, 201088, 131072, 0, 1.5e5, true, false, 32, 4}}};
  return shapes;
}

const LlamaShape* find_llama_shape(std::string_view name) {
  for (const NamedLlama& llama : llama_shapes()) {
    if (llama.name == name) return &llama.shape;
  }
  return nullptr;
}

IntegerLlama make_seeded_llama(const std::string& name, const LlamaShape& shape,
                               std::uint32_t length, std::uint64_t seed,
                               const hw::Machine::Datapath& datapath, bool with_weights,
                               bool int4) {
  check_llama_shape(name, shape);
  return SeededLlama(name, shape, length, seed, datapath, with_weights, int4).run();
}

}  // namespace systole::model

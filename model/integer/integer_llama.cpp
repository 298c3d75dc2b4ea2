#include "model/integer/integer_llama.h"

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "hw/function/layernorm.h"
#include "hw/number/integer.h"
#include "model/integer/constant_check.h"

namespace systole::model {
namespace {

constexpr std::int64_t kLargestLlamaWeight = 127;

class LlamaCheck {
 public:
  LlamaCheck(const std::string& place, const IntegerLlama& llama) : place_(place), llama_(llama) {}

  void run() const {
    factor("exp_to_code", llama_.exp_to_code);
    scale("embedding", llama_.embedding_scale);
    scale("logits", llama_.logit_scale);
    in_range("word", llama_.words(), -kLargestLlamaWeight, kLargestLlamaWeight);
    for (const hw::Dyadic word : llama_.word_factor) factor("word", word);
    llama_.words().let_go();
    for (std::size_t i = 0; i < llama_.blocks.size(); ++i) {
      block("blocks." + std::to_string(i) + ".", llama_.blocks[i]);
    }
    norm("norm", llama_.norm);
    linear("logits", llama_.output);
  }

 private:
  template <typename Values>
  void in_range(const std::string& name, const Values& values, std::int64_t lowest,
                std::int64_t highest) const {
    for (const auto value : values) {
      if (value >= lowest && value <= highest) continue;
      throw hw::InputError(place_ + ": " + name + ": " + std::to_string(value) + ", expected " +
                           std::to_string(lowest) + " to " + std::to_string(highest));
    }
  }
  void scale(const std::string& name, double value) const {
    if (std::isfinite(value) && value > 0) return;
    throw hw::InputError(place_ + ": " + name + ".scale: expected a positive number");
  }
  void factor(const std::string& name, hw::Dyadic factor, std::int64_t lowest = 0) const {
    const std::int64_t highest = (std::int64_t{1} << llama_.datapath.multiplier_bits) - 1;
    in_range(name + ".multiplier", std::array{factor.multiplier}, lowest, highest);
    in_range(name + ".shift", std::array{factor.shift}, 0, hw::kMaxDyadicShift);
  }
  void linear(const std::string& name, const IntegerLinear& layer) const {
    const std::int64_t room =
        std::int64_t{std::numeric_limits<std::int32_t>::max()} -
        std::int64_t{layer.inputs} * kLargestLlamaWeight * kLargestLlamaWeight;
    if (room < 0) {
      throw hw::InputError(place_ + ": " + name + ": " + std::to_string(layer.inputs) +
                           " inputs overflow the int32 accumulator");
    }
    in_range(name + ".weight", layer.weight, -kLargestLlamaWeight, kLargestLlamaWeight);
    layer.weight.let_go();  // of a network in a file nothing stays
    // After a row's scale nothing overflows: stages saturate.
    if (!llama_.row_scales) in_range(name + ".bias", layer.bias, -room, room);
    for (const hw::Dyadic channel : layer.factor) factor(name, channel);
  }
  void norm(const std::string& name, const IntegerRmsNorm& norm) const {
    constexpr std::int64_t kMost = std::int64_t{1} << hw::kLayerNormMultiplierBits;
    in_range(name + ".multiplier", norm.multiplier, -kMost, kMost);
    in_range(name + ".shift", std::array{norm.shift}, 0, hw::kMaxDyadicShift - 1);
    scale(name, norm.scale);
  }
  void block(const std::string& prefix, const IntegerLlamaBlock& block) const {
    norm(prefix + "norm1", block.norm1);
    norm(prefix + "norm2", block.norm2);
    linear(prefix + "attn.query", block.query);
    linear(prefix + "attn.key", block.key);
    linear(prefix + "attn.value", block.value);
    if (llama_.shape.head_norms) {
      norm(prefix + "attn.query_norm", block.query_norm);
      norm(prefix + "attn.key_norm", block.key_norm);
    }
    factor(prefix + "attn.score", block.score);
    factor(prefix + "attn.context", block.context);
    linear(prefix + "attn.proj", block.proj);
    if (llama_.shape.experts == 0) {
      mlp(prefix + "mlp.", block.gate, block.up, block.down);
    } else {
      linear(prefix + "mlp.router", block.router);
      scale(prefix + "mlp.router", block.router_scale);
    }
    for (std::size_t i = 0; i < block.experts.size(); ++i) {
      const IntegerExpert& expert = block.experts[i];
      mlp(prefix + "mlp.expert" + std::to_string(i) + ".", expert.gate, expert.up, expert.down);
    }
    if (llama_.shape.gelu) {
      ConstantCheck(place_, llama_.datapath).gelu(prefix + "mlp.gelu", block.gelu, kWideBits);
    } else {
      factor(prefix + "mlp.silu.argument", block.silu.argument);
      factor(prefix + "mlp.silu.factor", block.silu.output);
    }
    in_range(prefix + "mlp.product.shift", std::array{block.product_shift}, 0, hw::kMaxDyadicShift);
  }
  void mlp(const std::string& prefix, const IntegerLinear& gate, const IntegerLinear& up,
           const IntegerLinear& down) const {
    linear(prefix + "gate", gate);
    linear(prefix + "up", up);
    linear(prefix + "down", down);
  }

  const std::string& place_;
  const IntegerLlama& llama_;
};

}  // namespace

std::vector<std::int32_t> embed_tokens(const IntegerLlama& llama,
                                       const std::vector<std::int32_t>& ids) {
  const std::size_t width = llama.shape.width;
  const hw::IntRange range = hw::symmetric_range(llama.datapath.residual_bits);
  const std::int8_t* const words = llama.words().data();
  std::vector<std::int32_t> rows;
  rows.reserve(ids.size() * width);
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= llama.shape.vocabulary) {
      throw std::invalid_argument("embed_tokens: id " + std::to_string(id));
    }
    const auto index = static_cast<std::size_t>(id);
    for (std::size_t c = 0; c < width; ++c) {
      rows.push_back(static_cast<std::int32_t>(hw::requantise(
          words[index * width + c], llama.word_factor[index], llama.datapath.rounding, range)));
    }
  }
  return rows;
}

void require_groups(const std::string& place, const std::string& name, std::uint32_t inputs) {
  if (inputs % hw::kGroupWeights == 0) return;
  throw hw::InputError(place + ": " + name + ": " + std::to_string(inputs) +
                       " inputs, expected a multiple of " + std::to_string(hw::kGroupWeights) +
                       " for weights in groups");
}

void group_weights(IntegerLlama& llama, hw::WeightFormat format, const std::string& place) {
  const auto group = [&](const char* name, IntegerLinear& layer) {
    require_groups(place, name, layer.inputs);
    layer.format = format;
    layer.groups.clear();
    std::vector<std::int8_t>& weights = layer.weight.edit();
    layer.groups.reserve(weights.size() / hw::kGroupWeights);
    for (std::size_t i = 0; i < weights.size(); i += hw::kGroupWeights) {
      layer.groups.push_back(hw::round_to_group(format, &weights[i]));
    }
  };
  for (IntegerLlamaBlock& block : llama.blocks) {
    group("attn.query", block.query);
    group("attn.key", block.key);
    group("attn.value", block.value);
    group("attn.proj", block.proj);
    for (IntegerExpert& expert : block.experts) {
      group("mlp.expert.gate", expert.gate);
      group("mlp.expert.up", expert.up);
      group("mlp.expert.down", expert.down);
    }
    if (!block.experts.empty()) continue;
    group("mlp.gate", block.gate);
    group("mlp.up", block.up);
    group("mlp.down", block.down);
  }
}

void check_integer_llama(const IntegerLlama& llama, const std::string& place) {
  LlamaCheck(place, llama).run();
}

}  // namespace systole::model

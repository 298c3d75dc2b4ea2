#include "model/quantise/llama_losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "hw/number/weight_groups.h"
#include "model/float/float_llama.h"
#include "model/float/float_matrix.h"
#include "model/quantise/quantise_layers.h"
#include "model/quantise/quantiser_options.h"

namespace systole::model {
namespace {

using Values = std::vector<float>;

/// Rows of `cols` values, each rounded to codes of its own scale.
Values rounded_rows(const Values& values, std::size_t cols) {
  Values result(values.size());
  for (std::size_t first = 0; first < values.size(); first += cols) {
    float largest = 0;
    for (std::size_t i = first; i < first + cols; ++i) {
      largest = std::max(largest, std::fabs(values[i]));
    }
    const float scale = largest > 0 ? largest / static_cast<float>(kLargestCode) : 1.0F;
    for (std::size_t i = first; i < first + cols; ++i) {
      result[i] = std::nearbyint(values[i] / scale) * scale;
    }
  }
  return result;
}

/// Rows of weights rounded to codes of s8, or to groups.
Values rounded_weights(const Values& values, std::size_t cols, hw::WeightFormat format) {
  Values result = rounded_rows(values, cols);
  if (format == hw::WeightFormat::kInt8 || cols % hw::kGroupWeights != 0) return result;
  std::array<std::int8_t, hw::kGroupWeights> codes;
  std::array<double, hw::kGroupWeights> steps;
  for (std::size_t first = 0; first < values.size(); first += cols) {
    float largest = 0;
    for (std::size_t i = first; i < first + cols; ++i) {
      largest = std::max(largest, std::fabs(values[i]));
    }
    const float scale = largest <= 0 ? 1.0F
                        : hw::is_mx(format)
                            ? static_cast<float>(hw::mx_output_scale(double{largest}))
                            : largest / static_cast<float>(kLargestCode);
    for (std::size_t group = first; group < first + cols; group += codes.size()) {
      for (std::size_t i = 0; i < codes.size(); ++i) {
        steps[i] = double{values[group + i]} / scale;
        codes[i] = static_cast<std::int8_t>(
            std::nearbyint(std::clamp(result[group + i] / scale, -127.0F, 127.0F)));
      }
      if (hw::is_mx(format)) {
        static_cast<void>(hw::round_to_mx_group(format, steps.data(), codes.data()));
      } else {
        static_cast<void>(hw::round_to_group(format, codes.data()));
      }
      for (std::size_t i = 0; i < codes.size(); ++i) result[group + i] = codes[i] * scale;
    }
  }
  return result;
}

Values difference(Values from, const Values& less) {
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= less[i];
  return from;
}

double power_of_product(const Values& in, const Values& weight, std::size_t inputs) {
  const std::size_t rows = in.size() / inputs, outputs = weight.size() / inputs;
  const PackedMatrix<float> matrix(weight.data(), inputs, outputs, 1, inputs);
  Values out(rows * outputs);
  matrix.multiply(in.data(), inputs, rows, out.data(), outputs);
  double power = 0;
  for (const float x : out) power += double{x} * x;
  return power;
}

LayerLoss loss_of(std::string name, const Values& in, const Values& rounded, const Values& weight,
                  std::size_t inputs, hw::WeightFormat format) {
  const double power = std::max(power_of_product(in, weight, inputs), 1e-30);
  return {
      std::move(name),
      power_of_product(in, difference(weight, rounded_weights(weight, inputs, format)), inputs) /
          power,
      power_of_product(difference(in, rounded), weight, inputs) / power};
}

}  // namespace

std::vector<LayerLoss> llama_losses(const LlamaCheckpoint& llama,
                                    const std::vector<std::int32_t>& text,
                                    hw::WeightFormat format) {
  std::vector<LayerLoss> losses;
  static_cast<void>(llama_logits(
      llama, text,
      [&](LlamaSite site, std::size_t i, const float* values, std::size_t rows, std::size_t cols) {
        const Values in(values, values + rows * cols);
        const auto add = [&](const char* name, const LlamaLinear& layer, const Values& rounded) {
          losses.push_back(loss_of("blocks." + std::to_string(i) + "." + name, in, rounded,
                                   layer.weight, layer.inputs, format));
        };
        if (site == LlamaSite::kFinalNorm) {
          losses.push_back(loss_of("logits", in, rounded_rows(in, cols), llama.output_weight(),
                                   cols, hw::WeightFormat::kInt8));
          return;
        }
        if (site == LlamaSite::kNorm1) {
          const FloatLlamaBlock& block = llama.blocks[i];
          const Values rounded = rounded_rows(in, cols);
          add("attn.query", block.query, rounded);
          add("attn.key", block.key, rounded);
          add("attn.value", block.value, rounded);
        } else if (site == LlamaSite::kContext) {
          add("attn.proj", llama.blocks[i].proj, rounded_rows(in, cols));
        } else if (site == LlamaSite::kNorm2) {
          const FloatLlamaBlock& block = llama.blocks[i];
          const Values rounded = rounded_rows(in, cols);
          if (llama.shape.experts == 0) {
            add("mlp.gate", block.gate, rounded);
            add("mlp.up", block.up, rounded);
          }
          // As if all tokens went to every expert.
          for (std::size_t e = 0; e < block.experts.size(); ++e) {
            const std::string name = "mlp.expert" + std::to_string(e);
            add((name + ".gate").c_str(), block.experts[e].gate, rounded);
            add((name + ".up").c_str(), block.experts[e].up, rounded);
          }
        } else if (site == LlamaSite::kProduct && llama.shape.experts == 0) {
          add("mlp.down", llama.blocks[i].down, rounded_rows(in, cols));
        }
      }));
  return losses;
}

}  // namespace systole::model

#include <array>
#include <cmath>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/float/gpt.h"
#include "model/seeded/seeded_llama.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

/// Radford et al., 2019, and what adds to the residual stream divided by sqrt(2 layers).
constexpr double kDeviation = 0.02;

struct NamedText {
  std::string_view name;
  TextShape shape;
};

const std::array<NamedText, 2>& more_shapes() {
  // Layers, width, heads, hidden, post-norm, latent heads, causal; vocabulary, positions.
  static const std::array<NamedText, 2> shapes = {
      {{"gpt2-xl-dfx", {{48, 1536, 24, 6144, false, 0, true}, 50257, 1024}},
       {"kjv", {{4, 128, 4, 512, false, 0, true}, 128, 256}}}};
  return shapes;
}

/// Random halves: eleven bits of a draw choose one of 2048 that are evenly spread.
class HalfGenerator {
 public:
  explicit HalfGenerator(std::uint64_t seed) : engine_(seed) {}

  std::vector<hw::Half> values(std::size_t count, double centre, double deviation) {
    const double step = deviation * std::sqrt(12.0) / kChoices;
    std::array<hw::Half, kChoices> choices{};
    for (std::size_t i = 0; i < kChoices; ++i) {
      choices[i] = hw::to_half(centre + (static_cast<double>(i) - (kChoices - 1) / 2.0) * step);
    }
    std::vector<hw::Half> values(count);
    std::uint64_t draw = 0;
    for (std::size_t i = 0; i < count; ++i, draw >>= kBits) {
      if (i % kPerDraw == 0) draw = engine_();
      values[i] = choices[draw % kChoices];
    }
    return values;
  }

  HalfNorm norm(std::size_t width, bool bias) {
    HalfNorm norm{values(width, 1.0, kDeviation), {}};
    if (bias) norm.bias = values(width, 0.0, kDeviation);
    return norm;
  }

  HalfLinear linear(std::uint32_t inputs, std::uint32_t outputs, double deviation, bool bias) {
    HalfLinear linear{inputs, outputs, values(std::size_t{inputs} * outputs, 0.0, deviation), {}};
    if (bias) linear.bias = values(outputs, 0.0, kDeviation);
    return linear;
  }

 private:
  static constexpr unsigned kBits = 11;
  static constexpr std::size_t kChoices = 1U << kBits;
  static constexpr std::size_t kPerDraw = 64 / kBits;

  std::mt19937_64 engine_;
};

}  // namespace

TextShape gpt_shape(std::string_view name) {
  std::string known;
  for (const NamedShape& shape : named_shapes()) {
    if (shape.kind != NetworkKind::kDecoder) continue;
    if (shape.name == name) return {shape.shape, shape.vocabulary, shape.positions};
    known += std::string(shape.name) + ", ";
  }
  for (const NamedText& shape : more_shapes()) {
    if (shape.name == name) return shape.shape;
    known += std::string(shape.name) + ", ";
  }
  for (const NamedLlama& llama : llama_shapes()) known += std::string(llama.name) + ", ";
  known.resize(known.size() - 2);
  throw hw::InputError("shape '" + hw::printable(name) + "': unknown, expected one of " + known);
}

Gpt seeded_gpt(std::string name, const GptShape& shape, std::uint64_t seed) {
  HalfGenerator generator(seed);
  const std::uint32_t width = shape.encoder.width, hidden = shape.encoder.hidden;
  const double small = kDeviation / std::sqrt(2.0 * shape.encoder.layers);
  Gpt gpt;
  gpt.name = std::move(name);
  gpt.shape = shape;
  gpt.word = generator.values(std::size_t{shape.vocabulary} * width, 0.0, kDeviation);
  const bool gpt2 = !shape.llama, biased = gpt2 || shape.llama->qkv_bias;
  if (gpt2) {
    gpt.position = generator.values(std::size_t{shape.positions} * width, 0.0, kDeviation);
  }
  const std::uint32_t queries = shape.encoder.heads * shape.head_width(),
                      shared = shape.kv_heads() * shape.head_width();
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    GptLayer layer;
    layer.norm1 = generator.norm(width, gpt2);
    layer.query = generator.linear(width, queries, kDeviation, biased);
    layer.key = generator.linear(width, shared, kDeviation, biased);
    layer.value = generator.linear(width, shared, kDeviation, biased);
    layer.proj = generator.linear(queries, width, small, gpt2);
    layer.norm2 = generator.norm(width, gpt2);
    if (!gpt2) layer.gate = generator.linear(width, hidden, kDeviation, false);
    layer.fc1 = generator.linear(width, hidden, kDeviation, gpt2);
    layer.fc2 = generator.linear(hidden, width, small, gpt2);
    gpt.layers.push_back(std::move(layer));
  }
  gpt.norm = generator.norm(width, gpt2);
  if (!gpt2 && !shape.llama->tied) {
    gpt.untied = generator.values(std::size_t{shape.vocabulary} * width, 0.0, kDeviation);
  }
  return gpt;
}

}  // namespace systole::model

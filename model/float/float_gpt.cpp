#include "model/float/float_gpt.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/float/float_functions.h"

namespace systole::model {
namespace {

std::vector<float> widened(const std::vector<hw::Half>& halves) {
  std::vector<float> floats(halves.size());
  std::transform(halves.begin(), halves.end(), floats.begin(), hw::to_float);
  return floats;
}

void add(std::vector<float>& to, const std::vector<float>& other) {
  std::transform(to.begin(), to.end(), other.begin(), to.begin(), std::plus<>());
}

}  // namespace

FloatGpt::FloatGpt(const Gpt& gpt) : gpt_(gpt), norm_(widen(gpt.norm)), head_(pack_head(gpt)) {
  const std::size_t cache = std::size_t{gpt.shape.positions} * gpt.shape.encoder.width;
  for (const GptLayer& layer : gpt.layers) {
    layers_.push_back({widen(layer.norm1), widen(layer.norm2), pack(layer.query), pack(layer.key),
                       pack(layer.value), pack(layer.proj), pack(layer.fc1), pack(layer.fc2),
                       std::vector<float>(cache), std::vector<float>(cache)});
  }
}

std::vector<float> FloatGpt::append(const std::vector<std::int32_t>& ids) {
  return logits(run(ids).data(), ids.size());
}

FloatGpt::Norm FloatGpt::widen(const HalfNorm& norm) {
  return {widened(norm.weight), widened(norm.bias)};
}

FloatGpt::Linear FloatGpt::pack(const HalfLinear& linear) {
  return {{widened(linear.weight).data(), linear.inputs, linear.outputs, linear.outputs, 1},
          widened(linear.bias)};
}

PackedMatrix<float> FloatGpt::pack_head(const Gpt& gpt) {
  const std::size_t width = gpt.shape.encoder.width;
  return {widened(gpt.head()).data(), width, gpt.shape.vocabulary, 1, width};
}

std::vector<float> FloatGpt::apply(const Linear& linear, const std::vector<float>& in) const {
  const std::size_t inputs = linear.weight.k(), outputs = linear.bias.size();
  std::vector<float> out(in.size() / inputs * outputs);
  linear.weight.multiply(in.data(), inputs, in.size() / inputs, out.data(), outputs);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += linear.bias[i % outputs];
  return out;
}

std::vector<float> FloatGpt::normalise(const Norm& norm, const std::vector<float>& in) const {
  const std::size_t width = norm.weight.size();
  std::vector<float> out(in.size());
  for (std::size_t first = 0; first < in.size(); first += width) {
    layer_norm_row(&in[first], norm.weight.data(), norm.bias.data(), width,
                   static_cast<float>(gpt_.norm_epsilon), &out[first]);
  }
  return out;
}

std::vector<float> FloatGpt::run(const std::vector<std::int32_t>& ids) {
  if (ids.size() > shape().positions - length_) {
    throw std::invalid_argument("FloatGpt: more tokens than positions");
  }
  const std::size_t width = shape().encoder.width;
  std::vector<float> stream;
  stream.reserve(ids.size() * width);
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= shape().vocabulary) {
      throw std::invalid_argument("FloatGpt: an id outside the vocabulary");
    }
    const hw::Half* const word = &gpt_.word[static_cast<std::size_t>(id) * width];
    const hw::Half* const position = &gpt_.position[(length_ + stream.size() / width) * width];
    for (std::size_t i = 0; i < width; ++i) {
      stream.push_back(hw::to_float(word[i]) + hw::to_float(position[i]));
    }
  }
  for (Layer& layer : layers_) {
    add(stream, apply(layer.proj, attention(layer, normalise(layer.norm1, stream))));
    std::vector<float> hidden = apply(layer.fc1, normalise(layer.norm2, stream));
    for (float& x : hidden) x = gelu(x, GeluForm::kTanh);
    add(stream, apply(layer.fc2, hidden));
  }
  length_ += ids.size();
  return normalise(norm_, stream);
}

std::vector<float> FloatGpt::attention(Layer& layer, const std::vector<float>& in) const {
  const std::size_t width = shape().encoder.width, positions = shape().positions;
  const std::vector<float> query = apply(layer.query, in), key = apply(layer.key, in);
  const std::vector<float> value = apply(layer.value, in);
  std::copy(value.begin(), value.end(),
            layer.values.begin() + static_cast<std::ptrdiff_t>(length_ * width));
  for (std::size_t i = 0; i < key.size(); ++i) {
    layer.keys[i % width * positions + length_ + i / width] = key[i];
  }
  std::vector<float> context(in.size());
  for (std::size_t row = 0; row < in.size() / width; ++row) {
    attend(layer, &query[row * width], length_ + row + 1, &context[row * width]);
  }
  return context;
}

void FloatGpt::attend(const Layer& layer, const float* query, std::size_t keys,
                      float* context) const {
  const std::size_t width = shape().encoder.width, positions = shape().positions;
  const std::size_t head_width = shape().encoder.head_width();
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_width));
  std::vector<float> scores(keys);
  for (std::size_t first = 0; first < width; first += head_width) {
    std::fill(scores.begin(), scores.end(), 0.0F);
    for (std::size_t i = first; i < first + head_width; ++i) {
      const float* const feature = &layer.keys[i * positions];
      for (std::size_t t = 0; t < keys; ++t) scores[t] += query[i] * feature[t];
    }
    softmax_row(scores.data(), keys, scale);
    for (std::size_t t = 0; t < keys; ++t) {
      const float* const value = &layer.values[t * width];
      for (std::size_t i = first; i < first + head_width; ++i) context[i] += scores[t] * value[i];
    }
  }
}

std::vector<float> FloatGpt::logits(const float* hidden, std::size_t rows) const {
  std::vector<float> out(rows * shape().vocabulary);
  head_.multiply(hidden, shape().encoder.width, rows, out.data(), shape().vocabulary);
  return out;
}

}  // namespace systole::model

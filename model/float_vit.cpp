#include "model/float_vit.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "hw/error.h"

namespace systole::model {
namespace {

using Rows = std::vector<double>;

/// Real value of the brightest input.
constexpr double kInputSteps = 127.0;

double gelu(double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }

Rows layer_norm(const FloatNorm& norm, const Rows& in) {
  const std::size_t width = norm.weight.size();
  const auto count = static_cast<double>(width);
  Rows out(in.size());
  for (std::size_t first = 0; first < in.size(); first += width) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += in[first + i];
    const double mean = sum / count;
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) {
      squares += (in[first + i] - mean) * (in[first + i] - mean);
    }
    const double deviation = std::sqrt(squares / count + kNormEpsilon);
    for (std::size_t i = 0; i < width; ++i) {
      out[first + i] = (in[first + i] - mean) / deviation * norm.weight[i] + norm.bias[i];
    }
  }
  return out;
}

void softmax(double* row, std::size_t n, double scale) {
  double maximum = row[0] * scale;
  for (std::size_t i = 0; i < n; ++i) {
    row[i] *= scale;
    maximum = std::max(maximum, row[i]);
  }
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    row[i] = std::exp(row[i] - maximum);
    sum += row[i];
  }
  for (std::size_t i = 0; i < n; ++i) row[i] /= sum;
}

void add(Rows& to, const Rows& other) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += other[i];
}

void show(ActivationObserver* observer, Site site, std::size_t layer, const Rows& values,
          std::size_t cols) {
  if (observer != nullptr) {
    observer->observe(site, layer, values.data(), values.size() / cols, cols);
  }
}

}  // namespace

FloatVit::Linear FloatVit::pack(const FloatLinear& layer) {
  return {PackedMatrix(layer.weight.data(), layer.inputs, layer.outputs, 1, layer.inputs),
          layer.bias};
}

FloatVit::FloatVit(const VitCheckpoint& checkpoint)
    : checkpoint_(checkpoint),
      patch_embed_(pack(checkpoint.patch_embed)),
      head_(pack(checkpoint.head)) {
  for (const FloatBlock& block : checkpoint.blocks) {
    blocks_.push_back({pack(block.qkv), pack(block.proj), pack(block.fc1), pack(block.fc2)});
  }
}

FloatVit::Rows FloatVit::apply(const Linear& layer, const Rows& in) {
  const std::size_t outputs = layer.bias.size();
  const std::size_t rows = in.size() / layer.weight.k();
  Rows out(rows * outputs);
  layer.weight.multiply(in.data(), layer.weight.k(), rows, out.data(), outputs);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += layer.bias[i % outputs];
  return out;
}

FloatVit::Rows FloatVit::embed(const std::vector<std::int32_t>& patches) const {
  Rows pixels(patches.size());
  for (std::size_t i = 0; i < patches.size(); ++i) pixels[i] = patches[i] / kInputSteps;
  const Rows projected = apply(patch_embed_, pixels);
  Rows stream = checkpoint_.cls_token;
  stream.insert(stream.end(), projected.begin(), projected.end());
  add(stream, checkpoint_.position);
  return stream;
}

FloatVit::Rows FloatVit::attend(const Rows& qkv) const {
  const std::size_t width = shape().encoder.width;
  const std::size_t head_width = shape().encoder.head_width();
  const std::size_t stride = 3 * width;
  const std::size_t tokens = qkv.size() / stride;
  const double scale = std::pow(static_cast<double>(head_width), -0.5);
  Rows context(tokens * width);
  Rows scores(tokens * tokens);
  for (std::size_t first = 0; first < width; first += head_width) {
    const double* query = qkv.data() + first;
    const PackedMatrix keys(query + width, head_width, tokens, 1, stride);
    const PackedMatrix values(query + 2 * width, tokens, head_width, stride, 1);
    keys.multiply(query, stride, tokens, scores.data(), tokens);
    for (std::size_t t = 0; t < tokens; ++t) softmax(scores.data() + t * tokens, tokens, scale);
    values.multiply(scores.data(), tokens, tokens, context.data() + first, width);
  }
  return context;
}

FloatVit::Rows FloatVit::run_block(std::size_t layer, Rows stream,
                                   ActivationObserver* observer) const {
  const FloatBlock& block = checkpoint_.blocks[layer];
  const Block& packed = blocks_[layer];
  const std::size_t width = shape().encoder.width;
  const bool post = shape().encoder.post_norm;
  const auto norm = [&](const FloatNorm& parameters, const Rows& in, Site site) {
    Rows out = layer_norm(parameters, in);
    show(observer, site, layer, out, width);
    return out;
  };

  const Rows qkv = apply(packed.qkv, post ? stream : norm(block.norm1, stream, Site::kNorm1));
  show(observer, Site::kQkv, layer, qkv, 3 * width);
  const Rows context = attend(qkv);
  show(observer, Site::kContext, layer, context, width);
  add(stream, apply(packed.proj, context));
  show(observer, Site::kAttentionResidual, layer, stream, width);
  if (post) stream = norm(block.norm1, stream, Site::kNorm1);

  Rows hidden = apply(packed.fc1, post ? stream : norm(block.norm2, stream, Site::kNorm2));
  show(observer, Site::kGeluIn, layer, hidden, shape().encoder.hidden);
  for (double& x : hidden) x = gelu(x);
  show(observer, Site::kGeluOut, layer, hidden, shape().encoder.hidden);
  add(stream, apply(packed.fc2, hidden));
  show(observer, Site::kMlpResidual, layer, stream, width);
  return post ? norm(block.norm2, stream, Site::kNorm2) : stream;
}

std::vector<double> FloatVit::logits(const std::vector<std::int32_t>& patches,
                                     ActivationObserver* observer) const {
  const std::size_t expected = std::size_t{shape().patches()} * shape().patch_pixels();
  if (patches.size() != expected) {
    throw std::invalid_argument("FloatVit: " + std::to_string(patches.size()) +
                                " pixels, expected " + std::to_string(expected));
  }
  const std::size_t width = shape().encoder.width;
  const bool post = shape().encoder.post_norm;
  Rows stream = embed(patches);
  show(observer, Site::kEmbedding, 0, stream, width);
  if (post) {
    stream = layer_norm(checkpoint_.norm, stream);
    show(observer, Site::kEmbeddingNorm, 0, stream, width);
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    stream = run_block(i, std::move(stream), observer);
  }
  stream.resize(width);  // only the class token is classified
  if (!post) {
    stream = layer_norm(checkpoint_.norm, stream);
    show(observer, Site::kFinalNorm, 0, stream, width);
  }
  Rows result = apply(head_, stream);
  show(observer, Site::kLogits, 0, result, result.size());
  return result;
}

std::vector<std::int32_t> patches_of(const Dataset& data, std::size_t index,
                                     const VitShape& shape) {
  const std::size_t side = shape.image / shape.upsample;
  if (data.height != side || data.width != side) {
    throw hw::InputError("pictures of " + std::to_string(data.height) + " x " +
                         std::to_string(data.width) + " pixels, the model expects " +
                         std::to_string(side) + " x " + std::to_string(side));
  }
  return patchify(preprocess(data.image(index), static_cast<int>(shape.upsample)), shape.patch);
}

double float_accuracy(const FloatVit& vit, const Dataset& data) {
  if (data.labels.empty()) throw hw::InputError("the pictures have no labels");
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    if (argmax(vit.logits(patches_of(data, i, vit.shape()))) == data.labels[i]) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(data.count);
}

}  // namespace systole::model

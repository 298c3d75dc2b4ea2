#include "model/float_vit.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "hw/error.h"
#include "model/head_link.h"

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

/// Over the keys with keep[i] != 0, one at the least; over all if `keep` is null.
void softmax(double* row, std::size_t n, double scale, const std::uint8_t* keep) {
  double maximum = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < n; ++i) {
    row[i] =
        keep == nullptr || keep[i] != 0 ? row[i] * scale : -std::numeric_limits<double>::infinity();
    maximum = std::max(maximum, row[i]);
  }
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    row[i] = std::exp(row[i] - maximum);
    sum += row[i];
  }
  for (std::size_t i = 0; i < n; ++i) row[i] /= sum;
}

/// `count` columns of rows of `cols`, from `first`.
Rows columns(const Rows& in, std::size_t cols, std::size_t first, std::size_t count) {
  Rows out;
  out.reserve(in.size() / cols * count);
  for (std::size_t r = 0; r < in.size(); r += cols) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(r + first);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  return out;
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
    blocks_.push_back({pack(block.qkv), pack(block.proj), pack(block.fc1), pack(block.fc2),
                       pack(block.query_link), pack(block.key_link)});
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

std::optional<FloatVit::Link> FloatVit::pack(const FloatLink& link) const {
  if (link.decoder.outputs == 0) return std::nullopt;
  const std::uint32_t head_width = shape().encoder.head_width();
  Link packed{std::nullopt, pack(across_heads(link.decoder, head_width))};
  if (link.encoder.outputs != 0) packed.encoder = pack(across_heads(link.encoder, head_width));
  return packed;
}

FloatVit::Rows FloatVit::decode(const Link& link, Rows rows, std::size_t layer,
                                ActivationObserver* observer, Site latent, Site decoded) {
  if (link.encoder) rows = apply(*link.encoder, rows);
  show(observer, latent, layer, rows, link.decoder.weight.k());
  rows = apply(link.decoder, rows);
  show(observer, decoded, layer, rows, link.decoder.bias.size());
  return rows;
}

FloatVit::Rows FloatVit::attend(Columns query, Columns key, Columns value,
                                const std::vector<std::uint8_t>& keep) const {
  const std::size_t width = shape().encoder.width;
  const std::size_t head_width = shape().encoder.head_width();
  const std::size_t tokens = shape().tokens();
  const double scale = std::pow(static_cast<double>(head_width), -0.5);
  Rows context(tokens * width);
  Rows scores(tokens * tokens);
  const std::uint8_t* kept = keep.empty() ? nullptr : keep.data();
  for (std::size_t first = 0; first < width; first += head_width) {
    const PackedMatrix keys(key.data + first, head_width, tokens, 1, key.stride);
    const PackedMatrix values(value.data + first, tokens, head_width, value.stride, 1);
    keys.multiply(query.data + first, query.stride, tokens, scores.data(), tokens);
    for (std::size_t t = 0; t < tokens; ++t) {
      softmax(scores.data() + t * tokens, tokens, scale, kept);
      if (kept != nullptr) kept += tokens;
    }
    values.multiply(scores.data(), tokens, tokens, context.data() + first, width);
  }
  return context;
}

FloatVit::Rows FloatVit::attention(std::size_t layer, const Rows& in,
                                   ActivationObserver* observer) const {
  const Block& block = blocks_[layer];
  const std::vector<std::uint8_t>& keep = checkpoint_.blocks[layer].keep;
  const std::size_t width = shape().encoder.width;
  const Rows qkv = apply(block.qkv, in);
  const std::size_t cols = block.qkv.bias.size();
  const std::size_t query_width = (cols - width) / 2;
  show(observer, Site::kQkv, layer, qkv, cols);
  const Columns value{qkv.data() + 2 * query_width, cols};
  if (!block.query_link) {
    return attend({qkv.data(), cols}, {qkv.data() + query_width, cols}, value, keep);
  }
  const Rows query = decode(*block.query_link, columns(qkv, cols, 0, query_width), layer, observer,
                            Site::kLatentQuery, Site::kDecodedQuery);
  const Rows key = decode(*block.key_link, columns(qkv, cols, query_width, query_width), layer,
                          observer, Site::kLatentKey, Site::kDecodedKey);
  return attend({query.data(), width}, {key.data(), width}, value, keep);
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

  const Rows context =
      attention(layer, post ? stream : norm(block.norm1, stream, Site::kNorm1), observer);
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

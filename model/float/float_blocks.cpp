#include "model/float/float_blocks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/float/float_functions.h"
#include "model/integer/head_mix.h"

namespace systole::model {
namespace {

/// `count` columns of rows of `cols`, from `first`.
FloatRows columns(const FloatRows& in, std::size_t cols, std::size_t first, std::size_t count) {
  FloatRows out;
  out.reserve(in.size() / cols * count);
  for (std::size_t r = 0; r < in.size(); r += cols) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(r + first);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  return out;
}

void add(FloatRows& to, const FloatRows& other) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += other[i];
}

}  // namespace

FloatRows layer_norm(const FloatNorm& norm, const FloatRows& in, double epsilon) {
  const std::size_t width = norm.weight.size();
  FloatRows out(in.size());
  for (std::size_t first = 0; first < in.size(); first += width) {
    layer_norm_row(&in[first], norm.weight.data(), norm.bias.data(), width, epsilon, &out[first]);
  }
  return out;
}

void show(ActivationObserver* observer, Site site, std::size_t layer, const FloatRows& values,
          std::size_t cols) {
  if (observer != nullptr) {
    observer->observe(site, layer, values.data(), values.size() / cols, cols);
  }
}

PackedLinear::PackedLinear(const FloatLinear& layer)
    : weight(layer.weight.data(), layer.inputs, layer.outputs, 1, layer.inputs), bias(layer.bias) {}

FloatRows PackedLinear::apply(const FloatRows& in) const {
  const std::size_t outputs = bias.size();
  const std::size_t rows = in.size() / weight.k();
  FloatRows out(rows * outputs);
  weight.multiply(in.data(), weight.k(), rows, out.data(), outputs);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += bias[i % outputs];
  return out;
}

FloatBlocks::FloatBlocks(const EncoderShape& shape, std::vector<FloatBlock> blocks,
                         const Options& options)
    : shape_(shape), options_(options), layers_(std::move(blocks)) {
  for (FloatBlock& block : layers_) {
    blocks_.push_back({PackedLinear(block.qkv), PackedLinear(block.proj), PackedLinear(block.fc1),
                       PackedLinear(block.fc2), pack(block.query_link), pack(block.key_link),
                       std::nullopt});
    if (block.cross) {
      FloatCross& cross = *block.cross;
      blocks_.back().cross =
          Cross{PackedLinear(cross.query), PackedLinear(cross.key_value), PackedLinear(cross.proj)};
      for (FloatLinear* layer : {&cross.query, &cross.key_value, &cross.proj}) *layer = {};
    }
    // One copy of the weights is enough.
    for (FloatLinear* layer : {&block.qkv, &block.proj, &block.fc1, &block.fc2}) *layer = {};
  }
}

FloatRows FloatBlocks::run(FloatRows stream, ActivationObserver* observer,
                           const FloatRows* memory) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    stream = run_block(i, std::move(stream), observer, memory);
  }
  return stream;
}

std::optional<FloatBlocks::Link> FloatBlocks::pack(const FloatLink& link) const {
  if (link.decoder.outputs == 0) return std::nullopt;
  const std::uint32_t head_width = shape_.head_width();
  Link packed{std::nullopt, PackedLinear(across_heads(link.decoder, head_width))};
  if (link.encoder.outputs != 0) packed.encoder.emplace(across_heads(link.encoder, head_width));
  return packed;
}

FloatRows FloatBlocks::decode(const Link& link, FloatRows rows, std::size_t layer,
                              ActivationObserver* observer, Site latent, Site decoded) {
  if (link.encoder) rows = link.encoder->apply(rows);
  show(observer, latent, layer, rows, link.decoder.weight.k());
  rows = link.decoder.apply(rows);
  show(observer, decoded, layer, rows, link.decoder.bias.size());
  return rows;
}

FloatRows FloatBlocks::attend(std::size_t layer, const Attention& attention,
                              ActivationObserver* observer) const {
  const Columns &query = attention.query, &key = attention.key, &value = attention.value;
  const std::size_t tokens = attention.tokens, keys = attention.keys;
  const std::size_t width = shape_.width;
  const std::size_t head_width = shape_.head_width();
  const double scale = std::pow(static_cast<double>(head_width), -0.5);
  FloatRows context(tokens * width);
  FloatRows scores(tokens * keys);
  const std::vector<std::uint8_t>& keep = layers_[layer].keep;
  const std::uint8_t* kept = attention.is_own && !keep.empty() ? keep.data() : nullptr;
  for (std::size_t first = 0; first < width; first += head_width) {
    const PackedMatrix<double> of_keys(key.data + first, head_width, keys, 1, key.stride);
    const PackedMatrix<double> values(value.data + first, keys, head_width, value.stride, 1);
    of_keys.multiply(query.data + first, query.stride, tokens, scores.data(), keys);
    for (std::size_t t = 0; t < tokens; ++t) {
      double* const row = scores.data() + t * keys;
      const std::size_t seen = attention.is_own && shape_.causal ? t + 1 : keys;
      softmax_row(row, seen, scale, kept);
      std::fill(row + seen, row + keys, 0.0);
      if (kept != nullptr) kept += keys;
    }
    if (observer != nullptr && attention.is_own) {
      observer->observe_attention(layer, first / head_width, scores.data(), tokens);
    }
    values.multiply(scores.data(), keys, tokens, context.data() + first, width);
  }
  return context;
}

FloatRows FloatBlocks::attention(std::size_t layer, const FloatRows& in,
                                 ActivationObserver* observer) const {
  const Block& block = blocks_[layer];
  const std::size_t width = shape_.width;
  const FloatRows qkv = block.qkv.apply(in);
  const std::size_t tokens = in.size() / width;
  const std::size_t cols = block.qkv.bias.size();
  const std::size_t query_width = (cols - width) / 2;
  show(observer, Site::kQkv, layer, qkv, cols);
  const Columns value{qkv.data() + 2 * query_width, cols};
  const auto heads = [&](Columns query, Columns key) {
    return attend(layer, {query, key, value, tokens, tokens, true}, observer);
  };
  if (!block.query_link) return heads({qkv.data(), cols}, {qkv.data() + query_width, cols});
  const FloatRows query = decode(*block.query_link, columns(qkv, cols, 0, query_width), layer,
                                 observer, Site::kLatentQuery, Site::kDecodedQuery);
  const FloatRows key = decode(*block.key_link, columns(qkv, cols, query_width, query_width), layer,
                               observer, Site::kLatentKey, Site::kDecodedKey);
  return heads({query.data(), width}, {key.data(), width});
}

void FloatBlocks::add_cross(std::size_t layer, FloatRows& stream, const FloatRows& memory,
                            ActivationObserver* observer) const {
  const std::size_t width = shape_.width;
  const Cross& cross = *blocks_[layer].cross;
  const FloatRows normed = layer_norm(layers_[layer].cross->norm, stream, options_.norm_epsilon);
  show(observer, Site::kCrossNorm, layer, normed, width);
  const FloatRows query = cross.query.apply(normed);
  show(observer, Site::kCrossQuery, layer, query, width);
  const FloatRows key_value = cross.key_value.apply(memory);
  show(observer, Site::kCrossKeyValue, layer, key_value, 2 * width);
  const FloatRows context = attend(layer,
                                   {{query.data(), width},
                                    {key_value.data(), 2 * width},
                                    {key_value.data() + width, 2 * width},
                                    query.size() / width,
                                    memory.size() / width,
                                    false},
                                   observer);
  show(observer, Site::kCrossContext, layer, context, width);
  add(stream, cross.proj.apply(context));
  show(observer, Site::kCrossResidual, layer, stream, width);
}

FloatRows FloatBlocks::run_block(std::size_t layer, FloatRows stream, ActivationObserver* observer,
                                 const FloatRows* memory) const {
  const FloatBlock& block = layers_[layer];
  const Block& packed = blocks_[layer];
  const std::size_t width = shape_.width;
  const bool post = shape_.post_norm;
  const auto norm = [&](const FloatNorm& parameters, const FloatRows& in, Site site) {
    FloatRows out = layer_norm(parameters, in, options_.norm_epsilon);
    show(observer, site, layer, out, width);
    return out;
  };

  const FloatRows context =
      attention(layer, post ? stream : norm(block.norm1, stream, Site::kNorm1), observer);
  show(observer, Site::kContext, layer, context, width);
  add(stream, packed.proj.apply(context));
  show(observer, Site::kAttentionResidual, layer, stream, width);
  if (post) stream = norm(block.norm1, stream, Site::kNorm1);
  if (block.cross) add_cross(layer, stream, *memory, observer);

  FloatRows hidden = packed.fc1.apply(post ? stream : norm(block.norm2, stream, Site::kNorm2));
  show(observer, Site::kGeluIn, layer, hidden, shape_.hidden);
  for (double& x : hidden) x = gelu(x, options_.gelu);
  show(observer, Site::kGeluOut, layer, hidden, shape_.hidden);
  add(stream, packed.fc2.apply(hidden));
  show(observer, Site::kMlpResidual, layer, stream, width);
  return post ? norm(block.norm2, stream, Site::kNorm2) : stream;
}

}  // namespace systole::model

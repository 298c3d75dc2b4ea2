#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// Real-valued layers, as checkpoints hold them.
namespace systole::model {

/// y = W x + bias.
struct FloatLinear {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  std::vector<double> weight;  ///< [outputs, inputs]
  std::vector<double> bias;    ///< [outputs]
};

struct FloatNorm {
  std::vector<double> weight;
  std::vector<double> bias;
};

/// The auto-encoder on Q or K, linear across heads and the same for every token and feature of a
/// head: latent[a] = sum over heads of encoder[a, h] x[h] + bias[a], decoded likewise.
struct FloatLink {
  FloatLinear encoder;  ///< [latent heads, heads]; 0 outputs once folded into `qkv`
  FloatLinear decoder;  ///< [heads, latent heads]
};

/// Attention of a decoder to what an encoder gives, between the block's own attention and its MLP.
struct FloatCross {
  FloatNorm norm;
  FloatLinear query;
  FloatLinear key_value;  ///< of the encoder's states: keys, then values, each head after head
  FloatLinear proj;
};

struct FloatBlock {
  FloatNorm norm1;
  /// Query, key and value, each head after head: 3 * width outputs, or, with folded encoders, the
  /// latent heads of query and key and the width of value.
  FloatLinear qkv;
  FloatLink query_link, key_link;  ///< without auto-encoder: 0 outputs everywhere
  std::vector<std::uint8_t> keep;  ///< attention mask (model/checkpoint/keep_mask.h); empty: none
  FloatLinear proj;
  std::optional<FloatCross> cross;  ///< of pre-norm blocks alone
  FloatNorm norm2;
  FloatLinear fc1;
  FloatLinear fc2;
};

/// Between the layers of a head: BERT and RoBERTa have tanh, DistilBERT has ReLU.
enum class HeadFunction : std::uint8_t { kTanh, kRelu };

/// The head of a network that classifies texts: classes(function(dense(state of token 0))).
struct FloatTextHead {
  FloatLinear dense;  ///< width to width
  HeadFunction function = HeadFunction::kTanh;
  FloatLinear classes;
};

/// y = 0.5 x (1 + tanh(...)), which GPT-2 has in the place of the error function.
enum class GeluForm { kErf, kTanh };

}  // namespace systole::model

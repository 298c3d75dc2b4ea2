#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph_builder.h"
#include "model/integer_vit.h"

namespace systole::model {

/// Appends the layers of an integer encoder to a graph; the parts of make_vit_graph() and
/// make_encoder_graph().
class EncoderBlocks {
 public:
  /// Both outlive this object. The rows of every tensor are those of `sequences` sequences, one
  /// after the other, each of which attends to itself alone.
  EncoderBlocks(GraphBuilder& builder, const IntegerEncoder& encoder, std::uint32_t sequences = 1)
      : builder_(builder), encoder_(encoder), sequences_(sequences) {}

  /// Element type of the residual stream.
  [[nodiscard]] hw::DType residual_type() const;
  [[nodiscard]] unsigned residual_bits() const { return encoder_.datapath.residual_bits; }
  [[nodiscard]] hw::Rounding rounding() const { return encoder_.datapath.rounding; }

  /// Matmul, bias and requantisation to `bits`; the result is of `type`.
  View linear(const std::string& name, View in, const IntegerLinear& layer, unsigned bits,
              hw::DType type);
  View layer_norm(const std::string& name, View in, const IntegerLayerNorm& norm);
  /// Block number `index`. `in` is the residual stream, or if post-norm its LayerNorm; so is the
  /// result.
  View block(std::uint32_t index, View in);

 private:
  View attention(const std::string& prefix, View in, const IntegerBlock& block);
  /// Query or key (`operand` is "q" or "k") through its auto-encoder.
  View link(const std::string& prefix, const std::string& operand, View in,
            const IntegerLink& link);
  /// Head `index`.
  void head(const std::string& prefix, std::uint32_t index, View query, View key, View value,
            View context, const IntegerBlock& block);
  /// Scores with those outside the mask of head `index` pushed below all others, or as they are.
  View masked(const std::string& prefix, std::uint32_t index, View scores,
              const IntegerBlock& block);
  View mlp(const std::string& prefix, View in, const IntegerBlock& block);
  /// branch + identity, clamped to the residual stream.
  View add_residual(const std::string& layer, const std::string& name, View branch, View identity,
                    hw::Dyadic identity_factor, double scale);

  GraphBuilder& builder_;
  const IntegerEncoder& encoder_;
  std::uint32_t sequences_;
};

}  // namespace systole::model

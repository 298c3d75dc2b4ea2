#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/build/linear_nodes.h"
#include "model/graph/graph_builder.h"
#include "model/integer/integer_vit.h"
#include "model/integer/row_scales.h"

namespace systole::model {

/// Appends the layers of an integer encoder to a graph; the parts of make_vit_graph() and
/// make_encoder_graph().
class EncoderBlocks {
 public:
  struct Rows {
    /// The rows of every tensor are those of so many sequences, one after the other, each of which
    /// attends to itself alone.
    std::uint32_t sequences = 1;
    /// Rows of a cache of keys and values of each sequence, to whose last one the only row of the
    /// sequence in every tensor belongs (model/build/decode_graph.h); 0: no cache.
    std::uint32_t cache = 0;
    /// What the names of the blocks begin with.
    std::string prefix = {};
    /// Keys and values of an encoder for every block with IntegerBlock::cross, side by side, keys
    /// of a block before its values (EncoderBlocks::encoder_keys_values()): all rows attend to it.
    View memory = {};
  };

  /// Builder and encoder outlive this object. Throws std::invalid_argument for a cache of layers
  /// that are not causal, or have masks or an auto-encoder.
  EncoderBlocks(GraphBuilder& builder, const IntegerEncoder& encoder, Rows rows);
  EncoderBlocks(GraphBuilder& builder, const IntegerEncoder& encoder)
      : EncoderBlocks(builder, encoder, Rows()) {}

  /// Element type of the residual stream.
  [[nodiscard]] hw::DType residual_type() const;
  [[nodiscard]] unsigned residual_bits() const { return encoder_.datapath.residual_bits; }
  [[nodiscard]] hw::Rounding rounding() const { return encoder_.datapath.rounding; }

  /// An input of the graph, of `rows` rows.
  View input(const std::string& name, std::uint32_t rows, hw::DType type, double scale);
  /// Element type of the input of the first block: residual stream, or if post-norm its LayerNorm.
  [[nodiscard]] hw::DType stream_type() const {
    return encoder_.shape.post_norm ? operand_type() : residual_type();
  }

  /// What a product takes of `in`, a LayerNorm's or a GELU's result: as it is, or the codes of its
  /// rows with NAME.peak and NAME.codes.
  ProductInput operand(const std::string& name, View in);
  /// Matmul, bias and requantisation to `bits`; the result is of `type`.
  View linear(const std::string& name, const ProductInput& in, const IntegerLinear& layer,
              unsigned bits, hw::DType type);
  /// The same with the result in `out`, a view of a tensor that exists.
  void linear_to(const std::string& name, const ProductInput& in, const IntegerLinear& layer,
                 unsigned bits, View out);
  View layer_norm(const std::string& name, View in, const IntegerLayerNorm& norm);
  /// What the attentions of the blocks to an encoder read of its states, to `out` [rows of
  /// `states`, layers * 2 * width] (Rows::memory).
  void encoder_keys_values(View states, View out);
  /// A block's cache of a sequence, [Rows::cache, 2 * width].
  [[nodiscard]] static std::string cache_name(const Rows& rows, std::uint32_t block,
                                              std::uint32_t sequence);
  /// Block number `index`. `in` is the residual stream, or if post-norm its LayerNorm; so is the
  /// result.
  View block(std::uint32_t index, View in);

 private:
  /// What the names of a block begin with.
  [[nodiscard]] static std::string block_name(const Rows& rows, std::uint32_t index);
  struct Projections {
    View query;
    std::vector<View> key, value;  ///< of each sequence
  };
  /// Results of LayerNorms and GELUs.
  [[nodiscard]] hw::DType operand_type() const {
    return encoder_.row_scales ? hw::DType::kS16 : hw::DType::kS8;
  }
  [[nodiscard]] unsigned operand_bits() const { return value_bits(encoder_.row_scales); }
  /// Of all tokens at once.
  Projections project(const std::string& prefix, const ProductInput& in, const IntegerBlock& block);
  /// Of one token of each sequence; its key and value become the last row of the cache.
  Projections project_to_cache(const std::string& prefix, std::uint32_t index,
                               const ProductInput& in);
  View attention(const std::string& prefix, std::uint32_t index, const ProductInput& in);
  /// The attention of block `index` to Rows::memory.
  View cross_attention(const std::string& prefix, std::uint32_t index, View in);
  /// A tensor of as many columns as the network is wide.
  View context_of(const std::string& prefix, std::uint32_t rows, double scale);
  /// Query or key (`operand` is "q" or "k") through its auto-encoder.
  View link(const std::string& prefix, const std::string& operand, View in,
            const IntegerHeadMix& link);
  /// Head `index`.
  void head(const std::string& prefix, std::uint32_t index, View query, View key, View value,
            View context, const IntegerBlock& block);
  /// The head with the table that pushes scores outside its mask below all others, or as it is.
  AttentionHead masked(AttentionHead head, const std::string& prefix, std::uint32_t index,
                       const IntegerBlock& block);
  View mlp(const std::string& prefix, const ProductInput& in, const IntegerBlock& block);
  /// branch + identity, clamped to the residual stream.
  View add_residual(const std::string& layer, const std::string& name, View branch, View identity,
                    hw::Dyadic identity_factor, double scale);

  GraphBuilder& builder_;
  const IntegerEncoder& encoder_;
  Rows rows_;
};

}  // namespace systole::model

#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/instruction.h"
#include "mapper/ring/split.h"
#include "model/metadata/gpt_shape.h"

/// Where things are in a core's memories, and which part of the network is whose.
namespace systole::mapper::dfx {

using model::GptShape;

/// Sizes of a network on a machine: vectors are rounded up to whole registers of `depth` elements
/// and whole slices of columns, each head on its own.
struct Sizes {
  std::uint32_t depth, lanes;
  std::uint32_t columns;     ///< of a slice of weights
  std::uint32_t width;       ///< elements of the residual stream, rounded up
  std::uint32_t head;        ///< elements of a head, rounded up
  std::uint32_t hidden;      ///< rounded up
  std::uint32_t context;     ///< tokens that the caches have room for, rounded up
  std::uint32_t vocabulary;  ///< rounded up
  /// Columns of the hidden layer that one core has together: a slice or, of a Llama, whose gate
  /// the vector unit multiplies with, whole registers.
  std::uint32_t hidden_unit;

  /// Of the residual stream with what its norm reads after it.
  [[nodiscard]] std::uint32_t stream(const GptShape& shape) const {
    return width + (shape.llama ? depth : 0);
  }

  Sizes(const GptShape& shape, const hw::Machine& machine);
};

/// What core `core` of the machine's does: heads for attention, slices of `columns` columns of
/// the other products. Of a pipeline: all of some layers, as many weights for each core as can be
/// with whole layers; the last core has the output vocabulary.
struct Part {
  Range layers;  ///< of them it has a part, or all
  Range heads;
  Range kv;          ///< heads of keys and values that these read: those of a cut are on both sides
  Range projected;   ///< slices of the attention's projection, and of the second FFN product
  Range hidden;      ///< slices of the first FFN product
  Range vocabulary;  ///< slices of the output vocabulary

  Part(const GptShape& shape, const hw::Machine& machine, std::uint32_t core);
};

/// DDR: tables and vectors, the same on every core. Biases and LayerNorms in the order of their
/// columns.
struct DdrLayout {
  struct Layer {
    std::uint64_t norm1, norm2;  ///< gamma, then beta, which an RMSNorm has not
    /// 0: none, as the words are there.
    std::uint64_t value_bias, key_bias, query_bias, projection_bias, hidden_bias, output_bias;
    /// Of int8 weights, by column.
    std::uint64_t value_scales, key_scales, query_scales, projection_scales, gate_scales,
        hidden_scales, output_scales;
  };
  std::uint64_t words = 0, positions = 0;  ///< rows of Sizes::width
  /// Of a Llama, in the place of positions: for each a head's cosines, then its sines, every other
  /// one negative. And a register with the root of width x epsilon, zeros after it.
  std::uint64_t rotations = 0, epsilon = 0;
  std::uint32_t rotated = 0;  ///< positions there
  std::vector<Layer> layers;
  std::uint64_t norm = 0;
  std::uint64_t lm_head_scales = 0;
  std::uint64_t lm_head = 0;  ///< of the core's own part, if it is here
  std::uint64_t bytes = 0;
};

/// HBM of a core: weights tile by tile in the order of use, caches after them.
struct HbmLayout {
  struct Layer {
    hw::dfx::MatrixOperand value, key, query, projection, gate, hidden, output;
    std::uint64_t keys, values;  ///< caches, text after text, head after head
  };
  std::vector<Layer> layers;
  hw::dfx::MatrixOperand lm_head;
  std::uint64_t head_bytes = 0;  ///< of a head's keys, or values
  std::uint64_t text_bytes = 0;  ///< of a text's keys, or values, in a layer
  std::uint64_t weight_bytes = 0;
  std::uint64_t bytes = 0;
};

struct CoreLayout {
  Part part;
  DdrLayout ddr;
  HbmLayout hbm;
};

/// Of core `core`, with caches for so many texts. Throws InputError if it needs more memory than
/// there is, and says how much.
[[nodiscard]] CoreLayout lay_out(const GptShape& shape, const hw::Machine& machine,
                                 std::uint32_t core, std::uint32_t texts = 1);

}  // namespace systole::mapper::dfx

#pragma once

#include <string>

#include "model/network/network_walk.h"

/// What networks do with their inputs, found from the value that their first block reads.
namespace systole::model {

/// Of a text: the nodes that read its tables; null: none of that kind.
struct TextEmbedding {
  const NetworkNode* word = nullptr;
  const NetworkNode* position = nullptr;
  const NetworkNode* token_type = nullptr;
};
/// `node` sums them, in any order. Token types are what the input "token_type_ids" has.
[[nodiscard]] TextEmbedding text_embedding(const NetworkWalk& walk, const NetworkNode& node);

/// Of a picture.
struct PictureEmbedding {
  const NetworkNode* position;  ///< add_table, the result
  const NetworkNode* token;     ///< prepend
  const NetworkNode* projection;
  const NetworkNode* patches;
  const NetworkNode* normalise;  ///< null: none
};
[[nodiscard]] PictureEmbedding picture_embedding(const NetworkWalk& walk, const NetworkNode& node);

/// The shape of a vision model with that embedding, head and encoder. Throws InputError for sizes
/// beyond those of model/metadata/vit_metadata.h.
[[nodiscard]] VitShape picture_shape(const NetworkWalk& walk, const PictureEmbedding& embedding,
                                     const NetworkNode& head, const EncoderShape& encoder);

/// The layers of a vision model before and after its blocks.
struct VitEnds {
  const NetworkNode* head;  ///< a linear layer
  const NetworkNode* row;   ///< its input, the class token
  const NetworkNode* norm;  ///< after the last block; null if post-norm
  std::string blocks_end;   ///< output of the last block
};
[[nodiscard]] VitEnds vit_ends(const NetworkWalk& walk);

/// The layers of a network of texts after its blocks.
struct TextEnds {
  /// Of one that classifies; null: none. `function` is a tanh or a relu between the two layers.
  const NetworkNode* classes = nullptr;
  const NetworkNode* function = nullptr;
  const NetworkNode* dense = nullptr;
  const NetworkNode* row = nullptr;  ///< input of `dense`: token 0
  const NetworkNode* last;           ///< makes the states of the tokens
};
/// `end` makes the network's output.
[[nodiscard]] TextEnds text_ends(const NetworkWalk& walk, const NetworkNode& end);
/// The classes of that head, 0 without one. Throws InputError unless its layers fit the width.
[[nodiscard]] std::uint32_t text_classes(const NetworkWalk& walk, const TextEnds& ends,
                                         std::uint32_t width);

/// Throws InputError for blocks of sizes that no network may have.
void check_blocks(const NetworkWalk& walk, const NetworkNode& node, const EncoderShape& shape);
/// Throws InputError unless the shape is one that networks of texts may have.
void check_text_shape(const NetworkWalk& walk, const NetworkNode& node, std::size_t vocabulary,
                      std::size_t positions, std::size_t token_types, const EncoderShape& shape);

}  // namespace systole::model

#include "model/network/embedding_walk.h"

#include <fmt/format.h>

#include "model/metadata/text_shape.h"
#include "model/metadata/vit_metadata.h"

namespace systole::model {
namespace {

void add_leaf(const NetworkWalk& walk, const NetworkNode& sum, const std::string& value,
              TextEmbedding& found) {
  const NetworkNode* const node = walk.file().producer(value);
  if (node == nullptr) walk.file().fail(sum, "adds a graph input, expected rows of tables");
  if (node->is("add")) {
    for (const std::string& operand : node->inputs) add_leaf(walk, *node, operand, found);
    return;
  }
  const NetworkNode** place = nullptr;
  if (node->is("positions")) place = &found.position;
  if (node->is("embedding")) {
    place = node->inputs[0] == "token_type_ids" ? &found.token_type : &found.word;
  }
  if (place == nullptr || *place != nullptr) {
    walk.file().fail(*node,
                     "is added to the embedding, expected one embedding of input_ids, one "
                     "positions, and at most one embedding of token_type_ids");
  }
  *place = node;
}

void require(const NetworkWalk& walk, const NetworkNode& node, const char* what, std::size_t value,
             std::size_t most) {
  if (value >= 1 && value <= most) return;
  walk.file().fail(node, fmt::format("{}: {}, expected 1 to {}", what, value, most));
}

}  // namespace

TextEmbedding text_embedding(const NetworkWalk& walk, const NetworkNode& node) {
  TextEmbedding found;
  add_leaf(walk, node, node.output, found);
  if (found.word == nullptr || found.position == nullptr) {
    walk.file().fail(node, "expected the sum of an embedding of input_ids and of positions");
  }
  return found;
}

PictureEmbedding picture_embedding(const NetworkWalk& walk, const NetworkNode& node) {
  if (!node.is("add_table")) walk.file().fail(node, "expected an add_table of the positions");
  PictureEmbedding found{};
  found.position = &node;
  found.token = &walk.before(node, "prepend");
  found.projection = &walk.before(*found.token, "linear");
  found.patches = &walk.before(*found.projection, "patches");
  if (walk.made_by(found.patches->inputs[0], "normalise")) {
    found.normalise = &walk.before(*found.patches, "normalise");
  }
  return found;
}

VitShape picture_shape(const NetworkWalk& walk, const PictureEmbedding& embedding,
                       const NetworkNode& head, const EncoderShape& encoder) {
  const NetworkFile& file = walk.file();
  const NetworkNode& patches = *embedding.patches;
  const NetworkShape picture = file.shape_of(patches.inputs[0]);
  const auto number = [&](const char* key) {
    return patches.attributes.at(key).get<std::uint32_t>();
  };
  check_blocks(walk, *embedding.position, encoder);
  if (encoder.causal) file.fail(patches, "causal blocks after it, expected others");
  if (encoder.hidden % encoder.width != 0 || encoder.hidden > kMaxVitRatio * encoder.width) {
    file.fail(*embedding.position,
              fmt::format("an MLP of width {} after it, expected 1 to {} times {}", encoder.hidden,
                          kMaxVitRatio, encoder.width));
  }
  VitShape shape;
  shape.encoder = encoder;
  shape.patch = number("patch");
  shape.upsample = number("upsample");
  shape.levels = number("levels");
  shape.channels = static_cast<std::uint32_t>(picture[0]);
  shape.image = static_cast<std::uint32_t>(picture[1]) * shape.upsample;
  shape.classes = columns_of(file, head.output);
  require(walk, patches, "channels", shape.channels, kMaxVitChannels);
  require(walk, patches, "pixels", shape.image, kMaxVitImage);
  require(walk, patches, "attribute 'patch'", shape.patch, kMaxVitPatch);
  require(walk, patches, "attribute 'upsample'", shape.upsample, kMaxVitUpsample);
  require(walk, head, "classes", shape.classes, kMaxVitClasses);
  if (shape.levels != kDigitLevels && shape.levels != kByteLevels) {
    file.fail(patches, fmt::format("attribute 'levels': {}, expected {} or {}", shape.levels,
                                   kDigitLevels, kByteLevels));
  }
  return shape;
}

VitEnds vit_ends(const NetworkWalk& walk) {
  VitEnds ends{};
  ends.head = &walk.last();
  if (!ends.head->is("linear")) walk.file().fail(*ends.head, "expected a linear head");
  ends.row = &walk.before(*ends.head, "select_row");
  if (ends.row->attributes.at("row") != 0) {
    walk.file().fail(*ends.row, "attribute 'row': expected 0, the class token");
  }
  ends.blocks_end = ends.row->inputs[0];
  if (walk.ending(ends.blocks_end).is_block) return ends;
  ends.norm = &walk.before(*ends.row, "layer_norm");
  ends.blocks_end = ends.norm->inputs[0];
  return ends;
}

TextEnds text_ends(const NetworkWalk& walk, const NetworkNode& end) {
  TextEnds ends;
  ends.last = &end;
  if (!end.is("linear")) return ends;
  const NetworkNode* const function = walk.file().producer(end.inputs[0]);
  if (function == nullptr || !(function->is("tanh") || function->is("relu"))) return ends;
  ends.classes = &end;
  ends.function = function;
  ends.dense = &walk.before(*function, "linear");
  ends.row = &walk.before(walk.coded(*ends.dense), "select_row");
  if (ends.row->attributes.at("row") != 0) {
    walk.file().fail(*ends.row, "attribute 'row': expected 0, the first token");
  }
  ends.last = walk.file().producer(ends.row->inputs[0]);
  if (ends.last == nullptr) walk.file().fail(*ends.row, "reads a graph input, expected blocks");
  return ends;
}

std::uint32_t text_classes(const NetworkWalk& walk, const TextEnds& ends, std::uint32_t width) {
  if (ends.classes == nullptr) return 0;
  if (columns_of(walk.file(), ends.dense->output) != width) {
    walk.file().fail(*ends.dense, fmt::format("expected {} outputs, as the blocks have", width));
  }
  const std::uint32_t classes = columns_of(walk.file(), ends.classes->output);
  if (classes < kMinTextClasses || classes > kMaxTextClasses) {
    walk.file().fail(*ends.classes, fmt::format("classes: {}, expected {} to {}", classes,
                                                kMinTextClasses, kMaxTextClasses));
  }
  return classes;
}

void check_blocks(const NetworkWalk& walk, const NetworkNode& node, const EncoderShape& shape) {
  require(walk, node, "blocks", shape.layers, kMaxTextLayers);
  require(walk, node, "width", shape.width, kMaxTextWidth);
  require(walk, node, "width of the MLP", shape.hidden, kMaxTextHidden);
}

void check_text_shape(const NetworkWalk& walk, const NetworkNode& node, std::size_t vocabulary,
                      std::size_t positions, std::size_t token_types, const EncoderShape& shape) {
  if (shape.latent_heads != 0) {
    walk.file().fail(node, "the blocks have an auto-encoder, expected one in a vision model alone");
  }
  check_blocks(walk, node, shape);
  require(walk, node, "vocabulary", vocabulary, kMaxVocabulary);
  require(walk, node, "positions", positions, kMaxPositions);
  require(walk, node, "token types", token_types + 1, kMaxTokenTypes + 1);
}

}  // namespace systole::model

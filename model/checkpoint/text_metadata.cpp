#include "model/checkpoint/text_metadata.h"

#include "base/error.h"
#include "model/metadata/metadata.h"

namespace systole::model {
namespace {

constexpr const char* kTokenTypesKey = "token_types";

}  // namespace

TextShape read_text_shape(const Safetensors& file) {
  TextShape shape;
  EncoderShape& encoder = shape.encoder;
  encoder.layers = metadata_number(file, "L", 1, kMaxTextLayers);
  encoder.width = metadata_number(file, "d", 1, kMaxTextWidth);
  encoder.heads = metadata_number(file, "h", 1, encoder.width);
  encoder.hidden = metadata_number(file, "hidden", 1, kMaxTextHidden);
  encoder.post_norm = metadata_number(file, "post", 0, 1) == 1;
  encoder.causal = metadata_number(file, "causal", 0, 1) == 1;
  shape.vocabulary = metadata_number(file, "vocabulary", 1, kMaxVocabulary);
  shape.positions = metadata_number(file, "positions", 1, kMaxPositions);
  shape.token_types = file.metadata().count(kTokenTypesKey) != 0
                          ? metadata_number(file, kTokenTypesKey, 0, kMaxTokenTypes)
                          : (encoder.causal ? 0U : 1U);
  if (encoder.width % encoder.heads != 0) {
    throw hw::InputError(file.path() + ": metadata 'h': " + std::to_string(encoder.heads) +
                         ", expected a divisor of d = " + std::to_string(encoder.width));
  }
  return shape;
}

std::map<std::string, std::string> text_shape_metadata(const TextShape& shape) {
  const EncoderShape& encoder = shape.encoder;
  return {{"L", std::to_string(encoder.layers)},
          {"d", std::to_string(encoder.width)},
          {"h", std::to_string(encoder.heads)},
          {"hidden", std::to_string(encoder.hidden)},
          {"post", encoder.post_norm ? "1" : "0"},
          {"causal", encoder.causal ? "1" : "0"},
          {"vocabulary", std::to_string(shape.vocabulary)},
          {"positions", std::to_string(shape.positions)},
          {kTokenTypesKey, std::to_string(shape.token_types)}};
}

}  // namespace systole::model

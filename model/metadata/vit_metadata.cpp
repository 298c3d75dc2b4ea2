#include "model/metadata/vit_metadata.h"

#include <stdexcept>

#include "base/error.h"
#include "model/metadata/metadata.h"

namespace systole::model {
namespace {

/// What no file with an auto-encoder is without.
constexpr const char* kDecoderWeight = "blocks.0.attn.decoder_q.weight";

void require_divisor(const Safetensors& file, const char* key, std::uint32_t value,
                     const char* whole_key, std::uint32_t whole) {
  if (whole % value == 0) return;
  throw hw::InputError(file.path() + ": metadata '" + key + "': " + std::to_string(value) +
                       ", expected a divisor of " + whole_key + " = " + std::to_string(whole));
}

/// metadata_number(), or `absent` if there is no such key.
std::uint32_t number_or(const Safetensors& file, const std::string& key, std::uint32_t lowest,
                        std::uint32_t highest, std::uint32_t absent) {
  return file.metadata().count(key) != 0 ? metadata_number(file, key, lowest, highest) : absent;
}

}  // namespace

VitShape read_vit_shape(const Safetensors& file) {
  VitShape shape;
  EncoderShape& encoder = shape.encoder;
  encoder.layers = metadata_number(file, "L", 1, kMaxVitLayers);
  encoder.width = metadata_number(file, "d", 1, kMaxVitWidth);
  encoder.heads = metadata_number(file, "h", 1, kMaxVitWidth);
  encoder.hidden = encoder.width * metadata_number(file, "ratio", 1, kMaxVitRatio);
  encoder.post_norm = metadata_number(file, "post", 0, 1) == 1;
  shape.image = metadata_number(file, "img", 1, kMaxVitImage);
  shape.patch = metadata_number(file, "patch", 1, kMaxVitPatch);
  shape.classes = metadata_number(file, "ncls", 1, kMaxVitClasses);
  shape.upsample = metadata_number(file, "up", 1, kMaxVitUpsample);
  shape.channels = number_or(file, "channels", 1, kMaxVitChannels, shape.channels);
  shape.levels = number_or(file, "levels", kDigitLevels, kByteLevels, shape.levels);
  if (shape.levels != kDigitLevels && shape.levels != kByteLevels) {
    throw hw::InputError(file.path() + ": metadata 'levels': " + std::to_string(shape.levels) +
                         ", expected 17 or 256");
  }
  encoder.latent_heads = metadata_number(file, "ae", 0, encoder.heads - 1);
  if (encoder.latent_heads != 0 && !file.has(kDecoderWeight)) {
    throw hw::InputError(file.path() + ": metadata 'ae': " + std::to_string(encoder.latent_heads) +
                         ", but tensor '" + kDecoderWeight + "' is missing");
  }
  require_divisor(file, "h", encoder.heads, "d", encoder.width);
  require_divisor(file, "patch", shape.patch, "img", shape.image);
  require_divisor(file, "up", shape.upsample, "img", shape.image);
  return shape;
}

std::map<std::string, std::string> vit_shape_metadata(const VitShape& shape) {
  const EncoderShape& encoder = shape.encoder;
  if (encoder.width == 0 || encoder.hidden % encoder.width != 0) {
    throw std::invalid_argument("vision model: hidden is no multiple of the width");
  }
  std::map<std::string, std::string> metadata = {
      {"L", std::to_string(encoder.layers)},
      {"d", std::to_string(encoder.width)},
      {"h", std::to_string(encoder.heads)},
      {"ratio", std::to_string(encoder.hidden / encoder.width)},
      {"post", encoder.post_norm ? "1" : "0"},
      {"img", std::to_string(shape.image)},
      {"patch", std::to_string(shape.patch)},
      {"ncls", std::to_string(shape.classes)},
      {"up", std::to_string(shape.upsample)},
      {"ae", std::to_string(encoder.latent_heads)}};
  const PictureFormat digits;
  if (shape.channels != digits.channels) metadata["channels"] = std::to_string(shape.channels);
  if (shape.levels != digits.levels) metadata["levels"] = std::to_string(shape.levels);
  return metadata;
}

}  // namespace systole::model

#include "model/checkpoint/vit_checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/error.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/network_checkpoint.h"
#include "model/checkpoint/picture_normalisation.h"
#include "model/data/image.h"
#include "model/metadata/config_file.h"
#include "model/metadata/metadata.h"
#include "model/metadata/vit_metadata.h"

namespace systole::model {
namespace {

FloatLink read_link(CheckpointReader& reader, const std::string& prefix, const std::string& operand,
                    const EncoderShape& shape) {
  return {reader.linear(prefix + "encoder_" + operand, shape.latent_heads, shape.heads),
          reader.linear(prefix + "decoder_" + operand, shape.heads, shape.latent_heads)};
}

FloatBlock read_block(CheckpointReader& reader, const std::string& prefix, const VitShape& whole) {
  const EncoderShape& shape = whole.encoder;
  FloatBlock block;
  block.norm1 = reader.norm(prefix + "norm1", shape.width);
  block.qkv = reader.linear(prefix + "attn.qkv", 3 * shape.width, shape.width);
  if (shape.latent_heads != 0) {
    block.query_link = read_link(reader, prefix + "attn.", "q", shape);
    block.key_link = read_link(reader, prefix + "attn.", "k", shape);
  }
  block.proj = reader.linear(prefix + "attn.proj", shape.width, shape.width);
  block.norm2 = reader.norm(prefix + "norm2", shape.width);
  block.fc1 = reader.linear(prefix + "mlp.fc1", shape.hidden, shape.width);
  block.fc2 = reader.linear(prefix + "mlp.fc2", shape.width, shape.hidden);
  block.keep = reader.mask(prefix + "attn.keep_mask", shape.heads, whole.tokens());
  return block;
}

FloatBlock read_hf_block(CheckpointReader& reader, const std::string& prefix,
                         const EncoderShape& shape) {
  FloatBlock block;
  block.norm1 = reader.norm(prefix + "layernorm_before", shape.width);
  block.qkv = reader.query_key_value(prefix + "attention.attention.", shape.width);
  block.proj = reader.linear(prefix + "attention.output.dense", shape.width, shape.width);
  block.norm2 = reader.norm(prefix + "layernorm_after", shape.width);
  block.fc1 = reader.linear(prefix + "intermediate.dense", shape.hidden, shape.width);
  block.fc2 = reader.linear(prefix + "output.dense", shape.width, shape.hidden);
  return block;
}

VitCheckpoint read_timm(CheckpointReader& reader) {
  VitCheckpoint checkpoint;
  checkpoint.shape = read_vit_shape(reader.file());
  const VitShape& shape = checkpoint.shape;
  const std::size_t width = shape.encoder.width;
  const std::size_t patch = shape.patch;
  checkpoint.patch_embed = {
      shape.patch_samples(), shape.encoder.width,
      reader.read("patch_embed.proj.weight", {width, shape.channels, patch, patch}),
      reader.read("patch_embed.proj.bias", {width})};
  checkpoint.cls_token = reader.read("cls_token", {1, 1, width});
  checkpoint.position = reader.read("pos_embed", {1, shape.tokens(), width});
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    checkpoint.blocks.push_back(read_block(reader, "blocks." + std::to_string(i) + ".", shape));
  }
  checkpoint.norm = reader.norm("norm", width);
  checkpoint.head = reader.linear("head", shape.classes, shape.encoder.width);
  return checkpoint;
}

/// What the tensors of Hugging Face's names say of the shape.
VitShape hf_shape(const CheckpointReader& reader, const std::string& prefix) {
  const Safetensors& file = reader.file();
  const std::string projection = prefix + "embeddings.patch_embeddings.projection.weight";
  const std::string position = prefix + "embeddings.position_embeddings";
  const auto weight = reader.dimensions(projection, 4);
  const auto table = reader.dimensions(position, 3);
  const std::string hidden_name = prefix + "encoder.layer.0.intermediate.dense.weight";
  const auto hidden = reader.dimensions(hidden_name, 2);
  const auto classes = reader.dimensions("classifier.weight", 2);
  const auto side = static_cast<std::size_t>(
      std::llround(std::sqrt(static_cast<double>(table[1] > 0 ? table[1] - 1 : 0))));
  if (side == 0 || side * side + 1 != table[1]) {
    throw hw::InputError(file.path() + ": tensor '" + position + "': shape is " +
                         shape_text(table) +
                         ", expected a position for the class token and each of n x n patches");
  }
  VitShape shape;
  EncoderShape& encoder = shape.encoder;
  encoder.layers =
      count_blocks(file, prefix + "encoder.layer.", ".attention.attention.query.weight");
  encoder.width = reader.number(projection, weight[0], 1, kMaxVitWidth);
  encoder.heads = checkpoint_heads(file, encoder.width);
  encoder.hidden = reader.number(hidden_name, hidden[0], 1, kMaxVitRatio * encoder.width);
  shape.channels = reader.number(projection, weight[1], 1, kMaxVitChannels);
  shape.patch = reader.number(projection, weight[2], 1, kMaxVitPatch);
  shape.image = reader.number(position, shape.patch * side, 1, kMaxVitImage);
  shape.classes = reader.number("classifier.weight", classes[0], 1, kMaxVitClasses);
  if (file.metadata().count("up") != 0) {
    shape.upsample = metadata_number(file, "up", 1, kMaxVitUpsample);
  }
  if (encoder.hidden % encoder.width != 0 || shape.image % shape.upsample != 0) {
    throw hw::InputError(file.path() + ": tensor '" + hidden_name +
                         "': " + std::to_string(encoder.hidden) + " rows, expected a multiple of " +
                         std::to_string(encoder.width) + "; metadata 'up' divides the pixels");
  }
  return shape;
}

VitCheckpoint read_hf(CheckpointReader& reader, const std::string& prefix) {
  VitCheckpoint checkpoint;
  checkpoint.shape = hf_shape(reader, prefix);
  const VitShape& shape = checkpoint.shape;
  const std::size_t width = shape.encoder.width;
  const std::size_t patch = shape.patch;
  const std::string embeddings = prefix + "embeddings.";
  const std::string projection = embeddings + "patch_embeddings.projection";
  checkpoint.patch_embed = {
      shape.patch_samples(), shape.encoder.width,
      reader.read(projection + ".weight", {width, shape.channels, patch, patch}),
      reader.read(projection + ".bias", {width})};
  checkpoint.cls_token = reader.read(embeddings + "cls_token", {1, 1, width});
  checkpoint.position = reader.read(embeddings + "position_embeddings", {1, shape.tokens(), width});
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    checkpoint.blocks.push_back(
        read_hf_block(reader, prefix + "encoder.layer." + std::to_string(i) + ".", shape.encoder));
  }
  checkpoint.norm = reader.norm(prefix + "layernorm", width);
  checkpoint.head = reader.linear("classifier", shape.classes, shape.encoder.width);
  for (const char* pooler : {"pooler.dense.weight", "pooler.dense.bias"}) {
    reader.skip(prefix + pooler);
  }
  return checkpoint;
}

/// DeiT's distilled networks have a second token with its own head.
void refuse_distilled(const Safetensors& file, const std::string& name) {
  if (!file.has(name)) return;
  throw hw::InputError(file.path() + ": tensor '" + name +
                       "': a distilled network, expected one with a class token alone");
}

// Far beyond what is published, and no product of them overflows.
constexpr double kLeast = 1e-6, kLargest = 1e6;

/// Nothing if the key is absent, or null as Hugging Face's files may have it.
const nlohmann::json* find(const ConfigFile& config, const char* key) {
  const auto found = config.values.find(key);
  return found == config.values.end() || found->is_null() ? nullptr : &*found;
}

bool flag(const ConfigFile& config, const char* key) {
  const nlohmann::json* const found = find(config, key);
  if (found == nullptr) return true;
  if (!found->is_boolean()) config.fail(key, "true or false");
  return found->get<bool>();
}

double number(const ConfigFile& config, const std::string& key, const nlohmann::json& found,
              double lowest) {
  const double value = found.is_number() ? found.get<double>() : lowest - 1;
  if (value < lowest || value > kLargest) {
    config.fail(key, fmt::format("a number from {} to {}", lowest, kLargest));
  }
  return value;
}

/// A number for each channel; `values` stay as they are if the key is absent.
void read_channels(const ConfigFile& config, const char* key, double lowest,
                   std::vector<double>& values) {
  const nlohmann::json* const found = find(config, key);
  if (found == nullptr) return;
  if (!found->is_array() || found->size() != values.size()) {
    config.fail(key, fmt::format("a list of {}, one for each channel of the patch embedding",
                                 values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = number(config, fmt::format("{}[{}]", key, i), (*found)[i], lowest);
  }
}

PictureNormalisation read_normalisation(const std::optional<ConfigFile>& config,
                                        std::size_t channels) {
  constexpr double kUsual = 0.5;
  PictureNormalisation result;
  result.mean.assign(channels, kUsual);
  result.deviation.assign(channels, kUsual);
  if (!config) return result;
  const nlohmann::json* const rescale = find(*config, "rescale_factor");
  if (rescale != nullptr) result.rescale = number(*config, "rescale_factor", *rescale, kLeast);
  if (!flag(*config, "do_rescale")) result.rescale = 1.0;
  read_channels(*config, "image_mean", -kLargest, result.mean);
  read_channels(*config, "image_std", kLeast, result.deviation);
  if (!flag(*config, "do_normalize")) {
    result.mean.assign(channels, 0.0);
    result.deviation.assign(channels, 1.0);
  }
  return result;
}

/// Folds the normalisation of kPreprocessorFile (model/metadata/config_file.h), if there is one
/// beside the checkpoint, into the patch embedding, which then reads the codes of bytes
/// (model/data/image.h) in steps of 1 / kInputSteps, and sets the levels of the shape: a published
/// network reads the bytes x of channel c as (x * rescale - mean[c]) / std[c]. The keys are
/// "do_rescale", "rescale_factor", "do_normalize", "image_mean" and "image_std"; what is missing is
/// as Hugging Face's ViTImageProcessor has it: 1 / 255, and 0.5 for every mean and std. A network
/// of one channel without such a file beside it reads the digits, and stays as it is. Throws
/// InputError if the file is wrong.
void fold_normalisation(VitCheckpoint& checkpoint) {
  VitShape& shape = checkpoint.shape;
  const std::optional<ConfigFile> config = config_beside(checkpoint.path, kPreprocessorFile);
  if (!config && shape.channels == 1 && shape.levels == kDigitLevels) return;
  shape.levels = kByteLevels;
  fold_normalisation(read_normalisation(config, shape.channels), checkpoint.patch_embed,
                     shape.patch);
}

}  // namespace

void fold_normalisation(const PictureNormalisation& normalisation, FloatLinear& patch_embed,
                        std::uint32_t patch) {
  // A byte is code + offset, for a gain of 1.
  const double offset = sample_code(kByteLevels).offset;
  const std::size_t plane = std::size_t{patch} * patch;
  for (std::size_t o = 0; o < patch_embed.outputs; ++o) {
    for (std::size_t i = 0; i < patch_embed.inputs; ++i) {
      const double deviation = normalisation.deviation[i / plane];
      const double centre = offset * normalisation.rescale - normalisation.mean[i / plane];
      double& weight = patch_embed.weight[o * patch_embed.inputs + i];
      patch_embed.bias[o] += weight * centre / deviation;
      weight *= kInputSteps * normalisation.rescale / deviation;
    }
  }
}

VitCheckpoint load_vit_checkpoint(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  if (is_network_file(file)) return read_vit_checkpoint(NetworkFile(file));
  CheckpointReader reader(file);
  // Metadata alone make timm's names a network, and are missed with their own names.
  const bool described = file.metadata().count("L") != 0;
  const std::optional<CheckpointFamily> family =
      described ? find_family(file) : checkpoint_family(file);
  if (family && (is_text(*family) || family->names == CheckpointNames::kSeq2Seq)) {
    throw hw::InputError(file.path() + ": a text network, expected a vision model");
  }
  const bool hf = family && family->names == CheckpointNames::kHfVit;
  refuse_distilled(file, hf ? family->prefix + "embeddings.distillation_token" : "dist_token");
  VitCheckpoint checkpoint = hf ? read_hf(reader, family->prefix) : read_timm(reader);
  checkpoint.path = path;
  reader.check_all_used();
  fold_normalisation(checkpoint);
  return checkpoint;
}

}  // namespace systole::model

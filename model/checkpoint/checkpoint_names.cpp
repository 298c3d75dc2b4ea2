#include "model/checkpoint/checkpoint_names.h"

#include <array>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/network_checkpoint.h"
#include "model/metadata/config_file.h"
#include "model/metadata/metadata.h"

namespace systole::model {
namespace {

constexpr std::uint32_t kMaxLayers = 256;
constexpr std::uint32_t kUsualHeadWidth = 64;

struct Family {
  CheckpointNames names;
  std::array<const char*, 3> prefixes;
  const char* first;  ///< a tensor that no other family has
};

constexpr std::array<Family, 5> kFamilies = {
    {{CheckpointNames::kTimmVit, {"", "", ""}, "blocks.0.attn.qkv.weight"},
     {CheckpointNames::kHfVit,
      {"vit.", "deit.", ""},
      "encoder.layer.0.attention.attention.query.weight"},
     {CheckpointNames::kBert, {"bert.", "", ""}, "encoder.layer.0.attention.self.query.weight"},
     {CheckpointNames::kGpt2, {"transformer.", "", ""}, "h.0.attn.c_attn.weight"},
     {CheckpointNames::kSeq2Seq,
      {"", "", ""},
      "decoder.transformer.h.0.crossattention.c_attn.weight"}}};

/// 0 if there is no such file or number.
std::uint32_t heads_in_config(const std::string& checkpoint, const std::string& part) {
  auto config = config_beside(checkpoint, kConfigFile);
  if (!config) return 0;
  if (!part.empty()) {
    const auto found = config->values.find(part);
    if (found == config->values.end() || !found->is_object()) return 0;
    config->values = nlohmann::json(*found);
  }
  for (const char* key : {"num_attention_heads", "n_head"}) {
    const auto found = config->values.find(key);
    if (found == config->values.end()) continue;
    if (!found->is_number_unsigned() || *found == 0U || *found > 65536U) {
      config->fail(key, "a number from 1 to 65536");
    }
    return found->get<std::uint32_t>();
  }
  return 0;
}

}  // namespace

std::optional<CheckpointFamily> find_family(const Safetensors& file) {
  for (const Family& family : kFamilies) {
    for (const char* prefix : family.prefixes) {
      if (file.has(std::string(prefix) + family.first)) {
        return CheckpointFamily{family.names, prefix};
      }
    }
  }
  return std::nullopt;
}

CheckpointFamily checkpoint_family(const Safetensors& file) {
  if (const auto family = find_family(file)) return *family;
  std::string known;
  for (const Family& family : kFamilies) {
    known += (known.empty() ? "'" : ", '") + std::string(family.first) + "'";
  }
  throw hw::InputError(hw::printable(file.path()) +
                       ": no checkpoint of a known family, expected one of the tensors " + known);
}

bool is_text_checkpoint(const Safetensors& file) {
  if (is_network_file(file)) return !reads_pictures(read_network_document(file));
  const auto family = find_family(file);
  return family && is_text(*family);
}

bool is_seq2seq_checkpoint(const Safetensors& file) {
  const auto family = find_family(file);
  return !is_network_file(file) && family && family->names == CheckpointNames::kSeq2Seq;
}

const char* family_name(CheckpointNames names) {
  if (names == CheckpointNames::kSeq2Seq) return "BERT to GPT-2";
  if (names == CheckpointNames::kBert) return "BERT";
  return names == CheckpointNames::kGpt2 ? "GPT-2" : "ViT";
}

std::uint32_t count_blocks(const Safetensors& file, const std::string& prefix,
                           const std::string& suffix) {
  std::uint32_t count = 0;
  while (count < kMaxLayers && file.has(prefix + std::to_string(count) + suffix)) ++count;
  return count;
}

std::string part_of_encoder_decoder(const std::string& tensor) {
  const std::string part = tensor.substr(0, tensor.find('.'));
  return part == "encoder" || part == "decoder" ? part : "";
}

std::uint32_t checkpoint_heads(const Safetensors& file, std::uint32_t width,
                               const std::string& part) {
  std::uint32_t heads = 0;
  for (const char* key : {"h", "n_head"}) {
    if (file.metadata().count(key) != 0) heads = metadata_number(file, key, 1, width);
  }
  if (heads == 0) heads = heads_in_config(file.path(), part);
  if (heads == 0) heads = width / kUsualHeadWidth;
  if (heads == 0 || width % heads != 0) {
    throw hw::InputError(hw::printable(file.path()) + ": " + std::to_string(heads) +
                         " heads do not divide the width " + std::to_string(width) +
                         ", expected metadata 'h' or num_attention_heads in config.json");
  }
  return heads;
}

}  // namespace systole::model

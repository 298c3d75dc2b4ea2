#include "model/integer/integer_model.h"

#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/text_metadata.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/integer/integer_model_io.h"
#include "model/integer/integer_vit_check.h"
#include "model/integer/integer_vit_fields.h"
#include "model/metadata/datapath_metadata.h"
#include "model/metadata/metadata.h"
#include "model/metadata/vit_metadata.h"

namespace systole::model {
namespace {

/// Metadata: 1 if the encoders of the auto-encoder are part of `qkv`; may be absent.
constexpr const char* kFoldedKey = "ae_folded";

void require_metadata(const Safetensors& file, const std::string& key, const std::string& value) {
  const auto entry = file.metadata().find(key);
  if (entry != file.metadata().end() && entry->second == value) return;
  throw hw::InputError(file.path() + ": metadata '" + key + "': " +
                       (entry == file.metadata().end() ? "missing" : hw::printable(entry->second)) +
                       ", expected " + value + " of an integer model");
}

std::map<std::string, std::string> common_metadata(const char* format, const std::string& name,
                                                   const std::string& source,
                                                   const IntegerEncoder& encoder) {
  std::map<std::string, std::string> metadata = datapath_metadata(encoder.datapath);
  metadata["format"] = format;
  metadata["version"] = kIntegerModelVersion;
  metadata["name"] = name;
  metadata["source"] = source;
  return metadata;
}

/// Inverse of common_metadata(), but for the datapath, whose place is behind the shape.
template <typename Model>
void read_heading(const Safetensors& file, const char* format, Model& model) {
  require_metadata(file, "format", format);
  require_metadata(file, "version", kIntegerModelVersion);
  model.name = hw::printable(metadata_text(file, "name"));
  model.source = hw::printable(metadata_text(file, "source"));
}

}  // namespace

void save_integer_vit(const IntegerVit& vit, const std::string& path) {
  ConstantWriter writer;
  visit_vit(writer, vit);
  std::map<std::string, std::string> metadata =
      common_metadata(kIntegerModelFormat, vit.name, vit.source, vit.encoder);
  metadata.merge(vit_shape_metadata(vit.shape));
  if (vit.encoder.folded_encoders) metadata[kFoldedKey] = "1";
  write_safetensors(path, writer.tensors(), metadata);
}

IntegerVit load_integer_vit(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  IntegerVit vit;
  read_heading(file, kIntegerModelFormat, vit);
  vit.shape = read_vit_shape(file);
  vit.encoder.shape = vit.shape.encoder;
  vit.encoder.datapath = read_datapath(file);
  if (file.metadata().count(kFoldedKey) != 0) {
    // A network without auto-encoder has nothing to fold.
    const std::uint32_t most = vit.encoder.shape.latent_heads == 0 ? 0 : 1;
    vit.encoder.folded_encoders = metadata_number(file, kFoldedKey, 0, most) == 1;
  }
  vit.encoder.blocks.resize(vit.shape.encoder.layers);
  ConstantReader reader(file);
  visit_vit(reader, vit);
  reader.check_all_used();
  check_integer_vit(vit, path);
  return vit;
}

void save_integer_text(const IntegerText& text, const std::string& path) {
  ConstantWriter writer;
  visit_text(writer, text);
  std::map<std::string, std::string> metadata =
      common_metadata(kIntegerTextFormat, text.name, text.source, text.encoder);
  metadata.merge(text_shape_metadata(text.shape));
  write_safetensors(path, writer.tensors(), metadata);
}

IntegerText load_integer_text(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  IntegerText text;
  read_heading(file, kIntegerTextFormat, text);
  text.shape = read_text_shape(file);
  text.encoder.shape = text.shape.encoder;
  text.encoder.datapath = read_datapath(file);
  text.encoder.blocks.resize(text.shape.encoder.layers);
  ConstantReader reader(file);
  visit_text(reader, text);
  reader.check_all_used();
  check_integer_text(text, path);
  return text;
}

ModelKind model_kind(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end()) return ModelKind::kCheckpoint;
  if (format->second == kIntegerModelFormat) return ModelKind::kIntegerVit;
  return format->second == kIntegerTextFormat ? ModelKind::kIntegerText : ModelKind::kCheckpoint;
}

}  // namespace systole::model

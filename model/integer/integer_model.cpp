#include "model/integer/integer_model.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/keep_mask.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/integer/integer_network.h"
#include "model/integer/integer_vit_check.h"
#include "model/integer/integer_vit_fields.h"
#include "model/metadata/datapath_metadata.h"
#include "model/metadata/metadata.h"
#include "model/metadata/vit_metadata.h"

namespace systole::model {
namespace {

/// Writing: every visited constant becomes a tensor.
class ConstantWriter {
 public:
  void linear(const std::string& name, const IntegerLinear& layer, std::size_t outputs,
              std::size_t inputs) {
    add(name + ".weight", FileDtype::kI8, {outputs, inputs}, layer.weight.get());
    add(name + ".bias", FileDtype::kI32, {outputs}, layer.bias);
    factors(name, layer.factor, {outputs});
  }

  void norm(const std::string& name, const IntegerLayerNorm& norm, std::size_t width) {
    add(name + ".multiplier", FileDtype::kI32, {width}, norm.multiplier);
    add(name + ".bias", FileDtype::kI32, {width}, norm.addend);
    add<std::int8_t>(name + ".shift", FileDtype::kI8, {}, {static_cast<std::int8_t>(norm.shift)});
    scale(name, norm.scale);
  }

  void factor(const std::string& name, hw::Dyadic factor) { factors(name, {factor}, {}); }

  void table(const std::string& name, const std::vector<std::int32_t>& values, std::size_t rows,
             std::size_t cols) {
    add(name, FileDtype::kI32, {rows, cols}, values);
  }

  void number(const std::string& name, std::int64_t value) {
    add<std::int64_t>(name, FileDtype::kI64, {}, {value});
  }

  void scale(const std::string& name, double value) {
    add<double>(name + ".scale", FileDtype::kF64, {}, {value});
  }

  void mask(const std::string& name, const std::vector<std::uint8_t>& keep, std::size_t heads,
            std::size_t tokens) {
    if (!keep.empty()) tensors_.push_back(keep_mask_tensor(name, keep, heads, tokens));
  }

  [[nodiscard]] const std::vector<TensorData>& tensors() const { return tensors_; }

 private:
  template <typename T>
  void add(const std::string& name, FileDtype dtype, const std::vector<std::size_t>& shape,
           const std::vector<T>& values) {
    tensors_.push_back(make_tensor(name, dtype, shape, values));
  }

  void factors(const std::string& name, const std::vector<hw::Dyadic>& factors,
               const std::vector<std::size_t>& shape) {
    std::vector<std::int32_t> multipliers;
    std::vector<std::int8_t> shifts;
    for (const hw::Dyadic& factor : factors) {
      multipliers.push_back(factor.multiplier);
      shifts.push_back(factor.shift);
    }
    add(name + ".multiplier", FileDtype::kI32, shape, multipliers);
    add(name + ".shift", FileDtype::kI8, shape, shifts);
  }

  std::vector<TensorData> tensors_;
};

/// Reading: every visited constant must be a tensor of that type and shape.
class ConstantReader {
 public:
  explicit ConstantReader(const Safetensors& file) : file_(file) {}

  void linear(const std::string& name, IntegerLinear& layer, std::uint32_t outputs,
              std::uint32_t inputs) {
    layer.inputs = inputs;
    layer.outputs = outputs;
    layer.weight = get<std::int8_t>(name + ".weight", FileDtype::kI8, {outputs, inputs});
    layer.bias = get<std::int32_t>(name + ".bias", FileDtype::kI32, {outputs});
    layer.factor = factors(name, {outputs});
    layer.int4 = layer.fits_int4();
  }

  void norm(const std::string& name, IntegerLayerNorm& norm, std::size_t width) {
    norm.multiplier = get<std::int32_t>(name + ".multiplier", FileDtype::kI32, {width});
    norm.addend = get<std::int32_t>(name + ".bias", FileDtype::kI32, {width});
    // A negative shift becomes a large one, which the check of the values refuses.
    norm.shift =
        static_cast<std::uint32_t>(get<std::int8_t>(name + ".shift", FileDtype::kI8, {}).front());
    scale(name, norm.scale);
  }

  void factor(const std::string& name, hw::Dyadic& factor) { factor = factors(name, {}).front(); }

  void table(const std::string& name, std::vector<std::int32_t>& values, std::size_t rows,
             std::size_t cols) {
    values = get<std::int32_t>(name, FileDtype::kI32, {rows, cols});
  }

  void number(const std::string& name, std::int64_t& value) {
    value = get<std::int64_t>(name, FileDtype::kI64, {}).front();
  }

  void scale(const std::string& name, double& value) {
    value = get<double>(name + ".scale", FileDtype::kF64, {}).front();
  }

  void mask(const std::string& name, std::vector<std::uint8_t>& keep, std::size_t heads,
            std::size_t tokens) {
    if (!file_.has(name)) return;
    used_.insert(name);
    keep = read_keep_mask(file_, name, heads, tokens);
  }

  void check_all_used() const {
    for (const std::string& name : file_.names()) {
      if (used_.count(name) != 0) continue;
      throw hw::InputError(file_.path() + ": tensor '" + hw::printable(name) +
                           "': not part of the model that the metadata describe");
    }
  }

 private:
  template <typename T>
  std::vector<T> get(const std::string& name, FileDtype dtype,
                     const std::vector<std::size_t>& shape) {
    used_.insert(name);
    file_.expect(name, {dtype}, shape);
    return file_.copy<T>(name);
  }

  std::vector<hw::Dyadic> factors(const std::string& name, const std::vector<std::size_t>& shape) {
    const auto multipliers = get<std::int32_t>(name + ".multiplier", FileDtype::kI32, shape);
    const auto shifts = get<std::int8_t>(name + ".shift", FileDtype::kI8, shape);
    std::vector<hw::Dyadic> factors(multipliers.size());
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = {multipliers[i], shifts[i]};
    return factors;
  }

  const Safetensors& file_;
  std::set<std::string> used_;
};

constexpr const char* kTokenTypesKey = "token_types";
/// Of a network that classifies texts: the classes, and what is between the layers of its head.
constexpr const char* kClassesKey = "classes";
constexpr const char* kHeadKey = "head";
constexpr const char* kTanhWord = "tanh";
constexpr const char* kReluWord = "relu";

/// The shape of a text network in a file's metadata: L (blocks), d (width), h (heads), hidden, post
/// (1: post-norm), causal (1: a token attends to itself and to earlier ones), vocabulary,
/// positions, token_types, and the classes of one that classifies. A file without token_types has
/// type 0 alone, of an encoder, or none. Throws InputError if a key is missing, out of range, or
/// contradicts another.
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
  if (file.metadata().count(kClassesKey) != 0) {
    shape.classes = metadata_number(file, kClassesKey, kMinTextClasses, kMaxTextClasses);
  }
  if (encoder.width % encoder.heads != 0) {
    throw hw::InputError(file.path() + ": metadata 'h': " + std::to_string(encoder.heads) +
                         ", expected a divisor of d = " + std::to_string(encoder.width));
  }
  return shape;
}

/// The inverse.
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

/// The head of a file with classes, of which the function is known.
std::optional<IntegerTextHead> empty_head(const Safetensors& file, const TextShape& shape) {
  if (shape.classes == 0) return std::nullopt;
  const std::string function = metadata_text(file, kHeadKey);
  if (function != kTanhWord && function != kReluWord) {
    throw hw::InputError(file.path() + ": metadata '" + kHeadKey + "': " + hw::printable(function) +
                         ", expected " + kTanhWord + " or " + kReluWord);
  }
  IntegerTextHead head;
  if (function == kReluWord) head.function = HeadFunction::kRelu;
  return head;
}

/// Metadata: 1 if the encoders of the auto-encoder are part of `qkv`; may be absent.
constexpr const char* kFoldedKey = "ae_folded";

/// Metadata: 1 if rows have their own scales; may be absent.
constexpr const char* kRowScalesKey = "row_scales";

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

/// Inverse of common_metadata(), but for the datapath, whose place is after the shape.
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
  if (is_network_file(file)) return read_vit_network(NetworkFile(file));
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
  if (text.encoder.row_scales) metadata[kRowScalesKey] = "1";
  if (text.head) {
    metadata[kClassesKey] = std::to_string(text.shape.classes);
    metadata[kHeadKey] = text.head->function == HeadFunction::kTanh ? kTanhWord : kReluWord;
  }
  write_safetensors(path, writer.tensors(), metadata);
}

IntegerText load_integer_text(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  if (is_network_file(file)) return read_text_network(NetworkFile(file));
  IntegerText text;
  read_heading(file, kIntegerTextFormat, text);
  text.shape = read_text_shape(file);
  text.encoder.shape = text.shape.encoder;
  text.encoder.datapath = read_datapath(file);
  if (file.metadata().count(kRowScalesKey) != 0) {
    text.encoder.row_scales = metadata_number(file, kRowScalesKey, 0, 1) == 1;
  }
  text.encoder.blocks.resize(text.shape.encoder.layers);
  text.head = empty_head(file, text.shape);
  ConstantReader reader(file);
  visit_text(reader, text);
  reader.check_all_used();
  check_integer_text(text, path);
  return text;
}

IntegerLayers load_integer_layers(const std::string& path) {
  return read_layers_network(NetworkFile(Safetensors::open(path)));
}

IntegerSeq2Seq load_integer_seq2seq(const std::string& path) {
  return read_seq2seq_network(NetworkFile(Safetensors::open(path)));
}

IntegerLlama load_integer_llama(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  IntegerLlama llama = read_llama_network(NetworkFile(file));
  file.let_go();
  return llama;
}

std::string network_tokeniser(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const auto found = file.metadata().find(kTokeniserKey);
  return found == file.metadata().end() ? "" : found->second;
}

ModelKind model_kind(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  if (is_network_file(file)) {
    const NetworkDocument document = read_network_document(file);
    if (!document.is_integer()) return ModelKind::kCheckpoint;
    const IntegerKind kind = integer_kind(document);
    if (kind == IntegerKind::kLayers) return ModelKind::kIntegerLayers;
    if (kind == IntegerKind::kSeq2Seq) return ModelKind::kIntegerSeq2Seq;
    if (kind == IntegerKind::kLlama) return ModelKind::kIntegerLlama;
    if (kind == IntegerKind::kOperators) return ModelKind::kIntegerOperators;
    return kind == IntegerKind::kText ? ModelKind::kIntegerText : ModelKind::kIntegerVit;
  }
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end()) return ModelKind::kCheckpoint;
  if (format->second == kIntegerModelFormat) return ModelKind::kIntegerVit;
  return format->second == kIntegerTextFormat ? ModelKind::kIntegerText : ModelKind::kCheckpoint;
}

}  // namespace systole::model

#include "model/integer_model.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "hw/error.h"
#include "hw/printable.h"
#include "model/datapath_metadata.h"
#include "model/integer_vit_check.h"
#include "model/integer_vit_fields.h"
#include "model/keep_mask.h"
#include "model/metadata.h"
#include "model/safetensors.h"
#include "model/safetensors_writer.h"
#include "model/vit_metadata.h"

namespace systole::model {
namespace {

using Shape = std::vector<std::size_t>;

/// Metadata: 1 if the encoders of the auto-encoder are part of `qkv`; may be absent.
constexpr const char* kFoldedKey = "ae_folded";

/// Writing: every visited constant becomes a tensor.
class Writer {
 public:
  void linear(const std::string& name, const IntegerLinear& layer, std::size_t outputs,
              std::size_t inputs) {
    add(name + ".weight", FileDtype::kI8, {outputs, inputs}, layer.weight);
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
  void add(const std::string& name, FileDtype dtype, const Shape& shape,
           const std::vector<T>& values) {
    tensors_.push_back(make_tensor(name, dtype, shape, values));
  }

  void factors(const std::string& name, const std::vector<hw::Dyadic>& factors,
               const Shape& shape) {
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
class Reader {
 public:
  explicit Reader(const Safetensors& file) : file_(file) {}

  void linear(const std::string& name, IntegerLinear& layer, std::uint32_t outputs,
              std::uint32_t inputs) {
    layer.inputs = inputs;
    layer.outputs = outputs;
    layer.weight = get<std::int8_t>(name + ".weight", FileDtype::kI8, {outputs, inputs});
    layer.bias = get<std::int32_t>(name + ".bias", FileDtype::kI32, {outputs});
    layer.factor = factors(name, {outputs});
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
  std::vector<T> get(const std::string& name, FileDtype dtype, const Shape& shape) {
    used_.insert(name);
    file_.expect(name, {dtype}, shape);
    return file_.copy<T>(name);
  }

  std::vector<hw::Dyadic> factors(const std::string& name, const Shape& shape) {
    const auto multipliers = get<std::int32_t>(name + ".multiplier", FileDtype::kI32, shape);
    const auto shifts = get<std::int8_t>(name + ".shift", FileDtype::kI8, shape);
    std::vector<hw::Dyadic> factors(multipliers.size());
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = {multipliers[i], shifts[i]};
    return factors;
  }

  const Safetensors& file_;
  std::set<std::string> used_;
};

void require_metadata(const Safetensors& file, const std::string& key, const std::string& value) {
  const auto entry = file.metadata().find(key);
  if (entry != file.metadata().end() && entry->second == value) return;
  throw hw::InputError(file.path() + ": metadata '" + key + "': " +
                       (entry == file.metadata().end() ? "missing" : hw::printable(entry->second)) +
                       ", expected " + value + " of an integer model");
}

}  // namespace

void save_integer_vit(const IntegerVit& vit, const std::string& path) {
  Writer writer;
  visit_fields(writer, vit);
  std::map<std::string, std::string> metadata = vit_shape_metadata(vit.shape);
  metadata.merge(datapath_metadata(vit.encoder.datapath));
  if (vit.encoder.folded_encoders) metadata[kFoldedKey] = "1";
  metadata["format"] = kIntegerModelFormat;
  metadata["version"] = kIntegerModelVersion;
  metadata["name"] = vit.name;
  metadata["source"] = vit.source;
  write_safetensors(path, writer.tensors(), metadata);
}

IntegerVit load_integer_vit(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  require_metadata(file, "format", kIntegerModelFormat);
  require_metadata(file, "version", kIntegerModelVersion);
  IntegerVit vit;
  vit.name = hw::printable(metadata_text(file, "name"));
  vit.source = hw::printable(metadata_text(file, "source"));
  vit.shape = read_vit_shape(file);
  vit.encoder.shape = vit.shape.encoder;
  vit.encoder.datapath = read_datapath(file);
  if (file.metadata().count(kFoldedKey) != 0) {
    // A network without auto-encoder has nothing to fold.
    const std::uint32_t most = vit.encoder.shape.latent_heads == 0 ? 0 : 1;
    vit.encoder.folded_encoders = metadata_number(file, kFoldedKey, 0, most) == 1;
  }
  vit.encoder.blocks.resize(vit.shape.encoder.layers);
  Reader reader(file);
  visit_fields(reader, vit);
  reader.check_all_used();
  check_integer_vit(vit, path);
  return vit;
}

}  // namespace systole::model

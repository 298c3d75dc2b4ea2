#include "model/vit_checkpoint.h"

#include <cmath>
#include <set>

#include "hw/error.h"
#include "hw/printable.h"
#include "model/keep_mask.h"
#include "model/safetensors.h"
#include "model/vit_metadata.h"

namespace systole::model {
namespace {

class Reader {
 public:
  explicit Reader(const Safetensors& file) : file_(file) {}

  std::vector<double> read(const std::string& name, const std::vector<std::size_t>& shape) {
    file_.expect(name, {FileDtype::kF16, FileDtype::kBf16, FileDtype::kF32, FileDtype::kF64},
                 shape);
    used_.insert(name);
    const std::vector<float> values = file_.as_float(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) {
        throw hw::InputError(file_.path() + ": tensor '" + name + "': element " +
                             std::to_string(i) + " is not finite");
      }
    }
    return {values.begin(), values.end()};
  }

  FloatNorm norm(const std::string& name, std::size_t width) {
    return {read(name + ".weight", {width}), read(name + ".bias", {width})};
  }

  FloatLinear linear(const std::string& name, std::uint32_t outputs, std::uint32_t inputs) {
    return {inputs, outputs, read(name + ".weight", {outputs, inputs}),
            read(name + ".bias", {outputs})};
  }

  FloatLink link(const std::string& prefix, const std::string& operand, const EncoderShape& shape) {
    return {linear(prefix + "encoder_" + operand, shape.latent_heads, shape.heads),
            linear(prefix + "decoder_" + operand, shape.heads, shape.latent_heads)};
  }

  /// Empty if the file has no such tensor.
  std::vector<std::uint8_t> mask(const std::string& name, std::size_t heads, std::size_t tokens) {
    if (!file_.has(name)) return {};
    used_.insert(name);
    return read_keep_mask(file_, name, heads, tokens);
  }

  FloatBlock block(const std::string& prefix, const EncoderShape& shape) {
    FloatBlock block;
    block.norm1 = norm(prefix + "norm1", shape.width);
    block.qkv = linear(prefix + "attn.qkv", 3 * shape.width, shape.width);
    if (shape.latent_heads != 0) {
      block.query_link = link(prefix + "attn.", "q", shape);
      block.key_link = link(prefix + "attn.", "k", shape);
    }
    block.proj = linear(prefix + "attn.proj", shape.width, shape.width);
    block.norm2 = norm(prefix + "norm2", shape.width);
    block.fc1 = linear(prefix + "mlp.fc1", shape.hidden, shape.width);
    block.fc2 = linear(prefix + "mlp.fc2", shape.width, shape.hidden);
    return block;
  }

  void check_all_used() const {
    for (const std::string& name : file_.names()) {
      if (used_.count(name) != 0) continue;
      throw hw::InputError(file_.path() + ": tensor '" + hw::printable(name) +
                           "': not part of the network that the metadata describe");
    }
  }

 private:
  const Safetensors& file_;
  std::set<std::string> used_;
};

}  // namespace

VitCheckpoint load_vit_checkpoint(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  VitCheckpoint checkpoint;
  checkpoint.path = path;
  checkpoint.shape = read_vit_shape(file);
  const VitShape& shape = checkpoint.shape;
  const std::size_t width = shape.encoder.width;
  const std::size_t patch = shape.patch;

  Reader reader(file);
  checkpoint.patch_embed = {shape.patch_pixels(), shape.encoder.width,
                            reader.read("patch_embed.proj.weight", {width, 1, patch, patch}),
                            reader.read("patch_embed.proj.bias", {width})};
  checkpoint.cls_token = reader.read("cls_token", {1, 1, width});
  checkpoint.position = reader.read("pos_embed", {1, shape.tokens(), width});
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    const std::string prefix = "blocks." + std::to_string(i) + ".";
    checkpoint.blocks.push_back(reader.block(prefix, shape.encoder));
    checkpoint.blocks.back().keep =
        reader.mask(prefix + "attn.keep_mask", shape.encoder.heads, shape.tokens());
  }
  checkpoint.norm = reader.norm("norm", width);
  checkpoint.head = reader.linear("head", shape.classes, shape.encoder.width);
  reader.check_all_used();
  return checkpoint;
}

}  // namespace systole::model

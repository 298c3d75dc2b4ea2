#include "model/float/gpt.h"

#include <cstddef>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/gpt2_names.h"
#include "model/format/safetensors.h"

namespace systole::model {
namespace {

HalfNorm read_norm(CheckpointReader& reader, const std::string& name, std::size_t width) {
  return {reader.halves(name + ".weight", {width}), reader.halves(name + ".bias", {width})};
}

HalfLinear read_linear(CheckpointReader& reader, const std::string& name, std::uint32_t inputs,
                       std::uint32_t outputs) {
  return {inputs, outputs, reader.halves(name + ".weight", {inputs, outputs}),
          reader.halves(name + ".bias", {outputs})};
}

/// `count` outputs of a layer, from `first`.
HalfLinear some_outputs(const HalfLinear& all, std::uint32_t first, std::uint32_t count) {
  HalfLinear some{all.inputs, count, {}, {}};
  some.weight.reserve(std::size_t{all.inputs} * count);
  for (auto row = all.weight.begin() + first; some.weight.size() < some.weight.capacity();
       row += all.outputs) {
    some.weight.insert(some.weight.end(), row, row + count);
  }
  some.bias.assign(all.bias.begin() + first, all.bias.begin() + first + count);
  return some;
}

GptLayer read_layer(CheckpointReader& reader, const Gpt2Names::Layer& names,
                    const EncoderShape& shape) {
  const std::uint32_t width = shape.width;
  const HalfLinear qkv = read_linear(reader, names.qkv, width, 3 * width);
  GptLayer layer;
  layer.norm1 = read_norm(reader, names.norm1, width);
  layer.query = some_outputs(qkv, 0, width);
  layer.key = some_outputs(qkv, width, width);
  layer.value = some_outputs(qkv, 2 * width, width);
  layer.proj = read_linear(reader, names.proj, width, width);
  layer.norm2 = read_norm(reader, names.norm2, width);
  layer.fc1 = read_linear(reader, names.fc1, width, shape.hidden);
  layer.fc2 = read_linear(reader, names.fc2, shape.hidden, width);
  return layer;
}

}  // namespace

Gpt load_gpt(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const CheckpointFamily family = checkpoint_family(file);
  if (family.names != CheckpointNames::kGpt2) {
    throw hw::InputError(hw::printable(path) + ": names of " + family_name(family.names) +
                         ", expected GPT-2's");
  }
  CheckpointReader reader(file);
  const Gpt2Names names(family.prefix);
  Gpt gpt;
  gpt.name = path;
  gpt.shape = gpt2_shape(reader, names);
  const std::size_t width = gpt.shape.encoder.width;
  gpt.word = reader.halves(names.word, {gpt.shape.vocabulary, width});
  gpt.position = reader.halves(names.position, {gpt.shape.positions, width});
  for (std::uint32_t i = 0; i < gpt.shape.encoder.layers; ++i) {
    gpt.layers.push_back(read_layer(reader, names.layer(i), gpt.shape.encoder));
  }
  gpt.norm = read_norm(reader, names.norm, width);
  if (file.has(kGpt2Head)) {
    gpt.untied = reader.halves(kGpt2Head, {gpt.shape.vocabulary, width});
    if (gpt.untied == gpt.word) gpt.untied.clear();
  }
  skip_gpt2_masks(reader, names, gpt.shape.encoder.layers);
  skip_task_heads(reader, family.prefix);
  reader.check_all_used();
  return gpt;
}

}  // namespace systole::model

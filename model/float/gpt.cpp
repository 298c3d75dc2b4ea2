#include "model/float/gpt.h"

#include <cstddef>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/gpt2_names.h"
#include "model/checkpoint/network_checkpoint.h"
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

std::vector<hw::Half> halves(const NetworkFile& file, const std::vector<double>& values) {
  std::vector<hw::Half> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded[i] = hw::to_half(values[i]);
    if ((rounded[i].bits & hw::kHalfMagnitude) < hw::kHalfInfinity.bits) continue;
    throw hw::InputError(hw::printable(file.path()) + ": a constant is " +
                         std::to_string(values[i]) +
                         ", expected at most 65504, the largest number of FP16");
  }
  return rounded;
}

HalfNorm halves(const NetworkFile& file, const FloatNorm& norm) {
  return {halves(file, norm.weight), halves(file, norm.bias)};
}

/// Stored by input, as GPT-2's Conv1D has it.
HalfLinear halves(const NetworkFile& file, const FloatLinear& layer) {
  const std::vector<hw::Half> weight = halves(file, layer.weight);
  HalfLinear half{layer.inputs, layer.outputs, std::vector<hw::Half>(weight.size()),
                  halves(file, layer.bias)};
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      half.weight[i * layer.outputs + o] = weight[o * layer.inputs + i];
    }
  }
  return half;
}

Gpt read_gpt_network(const NetworkFile& file) {
  const TextWithHead network = read_text_checkpoint(file);
  const TextCheckpoint& text = network.text;
  const EncoderShape& encoder = text.shape.encoder;
  if (encoder.post_norm || !encoder.causal || text.gelu != GeluForm::kTanh ||
      text.norm_epsilon != kGpt2NormEpsilon || text.shape.token_types != 0) {
    throw hw::InputError(hw::printable(file.path()) +
                         ": expected GPT-2: causal pre-norm blocks, \"tanh\" gelus, epsilon 1e-05, "
                         "no token types");
  }
  Gpt gpt;
  gpt.name = file.path();
  gpt.shape = text.shape;
  gpt.word = halves(file, text.word);
  gpt.position = halves(file, text.position);
  const std::uint32_t width = encoder.width;
  for (const FloatBlock& block : text.blocks) {
    const HalfLinear qkv = halves(file, block.qkv);
    gpt.layers.push_back({halves(file, block.norm1), some_outputs(qkv, 0, width),
                          some_outputs(qkv, width, width), some_outputs(qkv, 2 * width, width),
                          halves(file, block.proj), halves(file, block.norm2),
                          halves(file, block.fc1), halves(file, block.fc2)});
  }
  gpt.norm = halves(file, text.norm);
  gpt.untied = halves(file, network.head);
  if (gpt.untied == gpt.word) gpt.untied.clear();
  return gpt;
}

}  // namespace

Gpt load_gpt(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  if (is_network_file(file)) return read_gpt_network(NetworkFile(file));
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

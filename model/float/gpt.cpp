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

template <typename Real>
std::vector<hw::Half> halves(const std::string& path, const std::vector<Real>& values) {
  std::vector<hw::Half> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded[i] = hw::to_half(values[i]);
    if ((rounded[i].bits & hw::kHalfMagnitude) < hw::kHalfInfinity.bits) continue;
    throw hw::InputError(hw::printable(path) + ": a constant is " + std::to_string(values[i]) +
                         ", expected at most 65504, the largest number of FP16");
  }
  return rounded;
}

HalfNorm halves(const std::string& path, const FloatNorm& norm) {
  return {halves(path, norm.weight), halves(path, norm.bias)};
}

/// Of a FloatLinear or a LlamaLinear. Stored by input, as GPT-2's Conv1D has it.
template <typename Linear>
HalfLinear half_linear(const std::string& path, const Linear& layer) {
  const std::vector<hw::Half> weight = halves(path, layer.weight);
  HalfLinear half{layer.inputs, layer.outputs, std::vector<hw::Half>(weight.size()),
                  halves(path, layer.bias)};
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      half.weight[i * layer.outputs + o] = weight[o * layer.inputs + i];
    }
  }
  return half;
}

Gpt read_gpt_network(const NetworkFile& file) {
  const std::string& path = file.path();
  const TextWithHead network = read_text_checkpoint(file);
  const TextCheckpoint& text = network.text;
  const EncoderShape& encoder = text.shape.encoder;
  if (encoder.post_norm || !encoder.causal || text.gelu != GeluForm::kTanh ||
      text.norm_epsilon != kGpt2NormEpsilon || text.shape.token_types != 0) {
    throw hw::InputError(hw::printable(path) +
                         ": expected GPT-2: causal pre-norm blocks, \"tanh\" gelus, epsilon 1e-05, "
                         "no token types");
  }
  Gpt gpt;
  gpt.name = path;
  gpt.shape = text.shape;
  gpt.word = halves(path, text.word);
  gpt.position = halves(path, text.position);
  const std::uint32_t width = encoder.width;
  for (const FloatBlock& block : text.blocks) {
    const HalfLinear qkv = half_linear(path, block.qkv);
    gpt.layers.push_back({halves(path, block.norm1), some_outputs(qkv, 0, width),
                          some_outputs(qkv, width, width), some_outputs(qkv, 2 * width, width),
                          half_linear(path, block.proj), halves(path, block.norm2), HalfLinear(),
                          half_linear(path, block.fc1), half_linear(path, block.fc2)});
  }
  gpt.norm = halves(path, text.norm);
  gpt.untied = halves(path, network.head);
  if (gpt.untied == gpt.word) gpt.untied.clear();
  return gpt;
}

}  // namespace

void require_ring_llama(const LlamaShape& shape, const std::string& place) {
  const char* const lacks = shape.experts != 0 ? "experts"
                            : shape.head_norms ? "norms of heads"
                            : shape.gelu       ? "GELU in a gate"
                                               : nullptr;
  if (lacks == nullptr) return;
  throw hw::InputError(hw::printable(place) + ": has " + lacks +
                       ", which a ring cannot run, expected a Llama without");
}

Gpt make_gpt(const LlamaCheckpoint& llama) {
  const std::string& path = llama.path;
  require_ring_llama(llama.shape, path);
  if (llama.word_factor != 1.0) {
    throw hw::InputError(
        hw::printable(path) +
        ": scales its words, which a ring cannot do, expected a Llama that does not");
  }
  Gpt gpt;
  gpt.name = llama.name;
  gpt.shape = GptShape(llama.shape);
  gpt.norm_epsilon = llama.norm_epsilon;
  gpt.word = halves(path, llama.word);
  for (const FloatLlamaBlock& block : llama.blocks) {
    GptLayer& layer = gpt.layers.emplace_back();
    layer.norm1.weight = halves(path, block.norm1);
    layer.query = half_linear(path, block.query);
    layer.key = half_linear(path, block.key);
    layer.value = half_linear(path, block.value);
    layer.proj = half_linear(path, block.proj);
    layer.norm2.weight = halves(path, block.norm2);
    layer.gate = half_linear(path, block.gate);
    layer.fc1 = half_linear(path, block.up);
    layer.fc2 = half_linear(path, block.down);
  }
  gpt.norm.weight = halves(path, llama.norm);
  if (!llama.shape.tied) gpt.untied = halves(path, llama.output.weight);
  return gpt;
}

Gpt load_gpt(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  if (is_network_file(file)) {
    const NetworkFile network(file);
    return is_llama(network.document()) ? make_gpt(read_llama_checkpoint(network))
                                        : read_gpt_network(network);
  }
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

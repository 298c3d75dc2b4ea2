#include "mapper/ring/image.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "hw/ring/int8_gemv.h"

namespace systole::mapper::dfx {
namespace {

using hw::Half;
using hw::kHalfBytes;
using hw::dfx::MatrixOperand;
using model::HalfLinear;
using model::HalfNorm;

constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

/// Which row or column of the network's matrix is at a place of the machine's, where each head
/// has a whole number of registers: kNowhere for what fills them up.
struct Heads {
  std::uint32_t head, padded;
  [[nodiscard]] std::uint32_t operator()(std::uint32_t place) const {
    const std::uint32_t in_head = place % padded;
    return in_head < head ? place / padded * head + in_head : kNowhere;
  }
};
/// The same for any other vector.
struct Plain {
  std::uint32_t size;
  [[nodiscard]] std::uint32_t operator()(std::uint32_t place) const {
    return place < size ? place : kNowhere;
  }
};

/// Calls `write(k, n)` for the elements of an operand in the order in which they are in memory.
template <typename Write>
void for_each_element(const hw::Machine& machine, const MatrixOperand& operand, Write write) {
  const std::uint32_t depth = machine.matrix.depth, lanes = machine.matrix.columns();
  for (std::uint32_t block = 0; block < operand.slices; block += operand.block) {
    const std::uint32_t end = std::min(block + operand.block, operand.slices);
    for (std::uint32_t tile = 0; tile < operand.k_tiles; ++tile) {
      for (std::uint32_t column = block * lanes; column < end * lanes; ++column) {
        for (std::uint32_t k = tile * depth; k < (tile + 1) * depth; ++k) write(k, column);
      }
    }
  }
}

/// A matrix [inputs, outputs] of the network: its weights are FP16 or, with a scale per column,
/// integers.
struct Weights {
  const Half* first;
  std::size_t inputs, outputs;
  std::size_t input_pitch, output_pitch;  ///< elements from one to the next

  explicit Weights(const HalfLinear& linear)
      : first(linear.weight.data()),
        inputs(linear.inputs),
        outputs(linear.outputs),
        input_pitch(linear.outputs),
        output_pitch(1) {}
  /// The output vocabulary: its table is [words, width].
  Weights(const std::vector<Half>& table, std::size_t words)
      : first(table.data()),
        inputs(table.size() / words),
        outputs(words),
        input_pitch(1),
        output_pitch(table.size() / words) {}

  [[nodiscard]] Half at(std::size_t input, std::size_t output) const {
    return first[input * input_pitch + output * output_pitch];
  }
  /// So that the largest weight of the column becomes the largest integer.
  [[nodiscard]] std::vector<Half> scales() const {
    std::vector<Half> scales;
    for (std::size_t n = 0; n < outputs; ++n) {
      float largest = 0;
      for (std::size_t k = 0; k < inputs; ++k) {
        largest = std::max(largest, std::fabs(hw::to_float(at(k, n))));
      }
      scales.push_back(hw::to_half(largest / hw::kInt8Limit));
    }
    return scales;
  }
};

/// `input(k)` and `output(n)`: rows and columns of the network's matrix for the operand's.
template <typename Input, typename Output>
void write_matrix(std::vector<Half>& memory, const hw::Machine& machine,
                  const MatrixOperand& operand, const Weights& weights, Input input,
                  Output output) {
  if (!operand.int8) {
    Half* out = memory.data() + operand.address / kHalfBytes;
    for_each_element(machine, operand, [&](std::uint32_t k, std::uint32_t n) {
      const std::uint32_t row = input(k), column = output(n);
      *out++ = row == kNowhere || column == kNowhere ? Half{0} : weights.at(row, column);
    });
    return;
  }
  std::vector<Half> inverses = weights.scales();
  for (Half& scale : inverses) scale = hw::half_recip(scale);
  auto* out = reinterpret_cast<std::int8_t*>(memory.data()) + operand.address;
  for_each_element(machine, operand, [&](std::uint32_t k, std::uint32_t n) {
    const std::uint32_t row = input(k), column = output(n);
    const bool nothing = row == kNowhere || column == kNowhere;
    *out++ = nothing ? std::int8_t{0} : hw::quantise(weights.at(row, column), inverses[column]);
  });
}

/// `inputs` and `columns` map places to rows and columns of the network's matrix; the operand's
/// first ones are `first_input` and `first_column`.
template <typename Inputs, typename Columns>
void write_linear(std::vector<Half>& memory, const hw::Machine& machine,
                  const MatrixOperand& operand, const HalfLinear& linear, Inputs inputs,
                  std::uint32_t first_input, Columns columns, std::uint32_t first_column) {
  write_matrix(
      memory, machine, operand, Weights(linear),
      [&](std::uint32_t k) { return inputs(first_input + k); },
      [&](std::uint32_t n) { return columns(first_column + n); });
}

void write_head(std::vector<Half>& memory, const hw::Machine& machine, const model::Gpt& gpt,
                const CoreLayout& layout) {
  const std::uint32_t first = layout.part.vocabulary.begin * machine.matrix.columns();
  const Plain width{gpt.shape.encoder.width}, words{gpt.shape.vocabulary};
  write_matrix(memory, machine, layout.hbm.lm_head, Weights(gpt.head(), gpt.shape.vocabulary),
               width, [&](std::uint32_t n) { return words(first + n); });
}

template <typename Places>
void write_vector(std::vector<Half>& memory, std::uint64_t address, const std::vector<Half>& values,
                  Places places, std::uint32_t padded) {
  Half* const out = memory.data() + address / kHalfBytes;
  for (std::uint32_t i = 0; i < padded; ++i) {
    const std::uint32_t from = places(i);
    out[i] = from == kNowhere ? Half{0} : values[from];
  }
}

/// Each pair of a head turns by the position times its frequency.
void write_llama_tables(std::vector<Half>& memory, const DdrLayout& ddr, const model::Gpt& gpt,
                        const Sizes& sizes) {
  const model::LlamaShape& shape = *gpt.shape.llama;
  const std::vector<double> frequencies = shape.frequencies();
  Half* out = memory.data() + ddr.rotations / kHalfBytes;
  for (std::uint32_t position = 0; position < ddr.rotated; ++position, out += 2 * sizes.head) {
    for (std::uint32_t i = 0; i < shape.head_width; ++i) {
      const double angle = position * frequencies[i / 2];
      out[i] = hw::to_half(std::cos(angle));
      out[sizes.head + i] = hw::to_half(i % 2 == 0 ? -std::sin(angle) : std::sin(angle));
    }
  }
  memory[ddr.epsilon / kHalfBytes] = hw::to_half(std::sqrt(shape.width * gpt.norm_epsilon));
}

}  // namespace

std::vector<Half> hbm_image(const model::Gpt& gpt, const hw::Machine& machine,
                            const CoreLayout& layout) {
  const Sizes sizes(gpt.shape, machine);
  const auto& shape = gpt.shape.encoder;
  const Heads heads{gpt.shape.head_width(), sizes.head};
  const Plain width{shape.width}, hidden{shape.hidden};
  const bool reduces = machine.ring.collective == hw::dfx::Collective::kAllReduce;
  const std::uint32_t lanes = sizes.columns;
  const std::uint32_t own_head = layout.part.heads.begin * sizes.head;
  const std::uint32_t own_kv = layout.part.kv.begin * sizes.head;
  const std::uint32_t own_hidden = layout.part.hidden.begin * lanes;
  const std::uint32_t own_width = reduces ? 0 : layout.part.projected.begin * lanes;
  // Where sums are exchanged, inputs of other cores count for nothing.
  const auto part_of_heads = [&](std::uint32_t place) {
    return !reduces || place < layout.part.heads.end * sizes.head ? heads(place) : kNowhere;
  };
  const auto part_of_hidden = [&](std::uint32_t place) {
    return place < layout.part.hidden.end * lanes ? hidden(place) : kNowhere;
  };

  std::vector<Half> memory(layout.hbm.bytes / kHalfBytes, Half{0});
  for (std::size_t i = 0; i < gpt.layers.size(); ++i) {
    const model::GptLayer& layer = gpt.layers[i];
    const HbmLayout::Layer& at = layout.hbm.layers[i];
    write_linear(memory, machine, at.value, layer.value, width, 0, heads, own_kv);
    write_linear(memory, machine, at.key, layer.key, width, 0, heads, own_kv);
    write_linear(memory, machine, at.query, layer.query, width, 0, heads, own_head);
    write_linear(memory, machine, at.projection, layer.proj, part_of_heads, reduces ? own_head : 0,
                 width, own_width);
    if (gpt.shape.llama) {
      write_linear(memory, machine, at.gate, layer.gate, width, 0, hidden, own_hidden);
    }
    write_linear(memory, machine, at.hidden, layer.fc1, width, 0, hidden, own_hidden);
    if (reduces) {
      write_linear(memory, machine, at.output, layer.fc2, part_of_hidden, own_hidden, width, 0);
    } else {
      write_linear(memory, machine, at.output, layer.fc2, hidden, 0, width, own_width);
    }
  }
  if (!layout.hbm.lm_head.in_ddr) write_head(memory, machine, gpt, layout);
  return memory;
}

std::vector<Half> ddr_image(const model::Gpt& gpt, const hw::Machine& machine,
                            const CoreLayout& layout) {
  const Sizes sizes(gpt.shape, machine);
  const auto& shape = gpt.shape.encoder;
  const Heads heads{gpt.shape.head_width(), sizes.head};
  const Plain width{shape.width}, hidden{shape.hidden};
  const DdrLayout& ddr = layout.ddr;
  std::vector<Half> memory(ddr.bytes / kHalfBytes, Half{0});

  const auto rows = [&](std::uint64_t address, const std::vector<Half>& table) {
    const std::size_t count = table.size() / shape.width;
    for (std::size_t row = 0; row < count; ++row) {
      std::copy_n(
          table.begin() + static_cast<std::ptrdiff_t>(row * shape.width), shape.width,
          memory.begin() + static_cast<std::ptrdiff_t>(address / kHalfBytes + row * sizes.width));
    }
  };
  const auto norm = [&](std::uint64_t address, const HalfNorm& parameters) {
    write_vector(memory, address, parameters.weight, width, sizes.width);
    if (parameters.bias.empty()) return;
    write_vector(memory, address + sizes.width * kHalfBytes, parameters.bias, width, sizes.width);
  };
  const auto bias = [&](std::uint64_t address, const HalfLinear& layer, auto places,
                        std::uint32_t padded) {
    if (!layer.bias.empty()) write_vector(memory, address, layer.bias, places, padded);
  };
  rows(ddr.words, gpt.word);
  rows(ddr.positions, gpt.position);
  if (gpt.shape.llama) write_llama_tables(memory, ddr, gpt, sizes);
  const std::uint32_t all_heads = shape.heads * sizes.head;
  const std::uint32_t all_kv = gpt.shape.kv_heads() * sizes.head;
  for (std::size_t i = 0; i < gpt.layers.size(); ++i) {
    const model::GptLayer& layer = gpt.layers[i];
    const DdrLayout::Layer& at = ddr.layers[i];
    norm(at.norm1, layer.norm1);
    norm(at.norm2, layer.norm2);
    bias(at.value_bias, layer.value, heads, all_kv);
    bias(at.key_bias, layer.key, heads, all_kv);
    bias(at.query_bias, layer.query, heads, all_heads);
    bias(at.projection_bias, layer.proj, width, sizes.width);
    bias(at.hidden_bias, layer.fc1, hidden, sizes.hidden);
    bias(at.output_bias, layer.fc2, width, sizes.width);
  }
  norm(ddr.norm, gpt.norm);
  if (machine.matrix.format == hw::dfx::Format::kInt8) {
    const auto scales = [&](std::uint64_t address, const Weights& weights, auto places,
                            std::uint32_t padded) {
      write_vector(memory, address, weights.scales(), places, padded);
    };
    for (std::size_t i = 0; i < gpt.layers.size(); ++i) {
      const model::GptLayer& layer = gpt.layers[i];
      const DdrLayout::Layer& at = ddr.layers[i];
      scales(at.value_scales, Weights(layer.value), heads, all_kv);
      scales(at.key_scales, Weights(layer.key), heads, all_kv);
      scales(at.query_scales, Weights(layer.query), heads, all_heads);
      scales(at.projection_scales, Weights(layer.proj), width, sizes.width);
      if (gpt.shape.llama) scales(at.gate_scales, Weights(layer.gate), hidden, sizes.hidden);
      scales(at.hidden_scales, Weights(layer.fc1), hidden, sizes.hidden);
      scales(at.output_scales, Weights(layer.fc2), width, sizes.width);
    }
    scales(ddr.lm_head_scales, Weights(gpt.head(), gpt.shape.vocabulary),
           Plain{gpt.shape.vocabulary}, sizes.vocabulary);
  }
  if (layout.hbm.lm_head.in_ddr) write_head(memory, machine, gpt, layout);
  return memory;
}

}  // namespace systole::mapper::dfx

#include "mapper/ring/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "hw/description/machine_text.h"

namespace systole::mapper::dfx {
namespace {

using hw::kHalfBytes;
using hw::dfx::Collective;
using hw::dfx::Format;
using hw::dfx::MatrixOperand;
using hw::dfx::Placement;

/// Gives out addresses one after the other.
class Allocator {
 public:
  explicit Allocator(std::uint64_t alignment) : alignment_(alignment) {}
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t address = next_;
    next_ += (bytes + alignment_ - 1) / alignment_ * alignment_;
    return address;
  }
  [[nodiscard]] std::uint64_t used() const { return next_; }

 private:
  std::uint64_t alignment_;
  std::uint64_t next_ = 0;
};

/// Weights, in blocks of as many slices as the matrix unit has partial sums.
MatrixOperand take_matrix(Allocator& memory, const hw::Machine& machine, std::uint32_t inputs,
                          std::uint32_t slices) {
  MatrixOperand matrix;
  matrix.k_tiles = inputs / machine.matrix.depth;
  matrix.slices = slices;
  matrix.block = machine.matrix.partial_sums;
  matrix.int8 = machine.matrix.format == Format::kInt8;
  matrix.address = memory.take(std::uint64_t{matrix.k_tiles} * slices * machine.matrix.depth *
                               machine.matrix.columns() * (matrix.int8 ? 1 : kHalfBytes));
  return matrix;
}

DdrLayout lay_out_ddr(const GptShape& shape, const hw::Machine& machine, const Sizes& sizes,
                      const Part& part) {
  Allocator memory(64);
  DdrLayout ddr;
  const auto vector = [&](std::uint64_t elements) { return memory.take(elements * kHalfBytes); };
  ddr.words = vector(std::uint64_t{shape.vocabulary} * sizes.width);
  const bool gpt2 = !shape.llama;
  const std::uint64_t norm = (gpt2 ? 2 : 1) * std::uint64_t{sizes.width};
  const auto bias = [&](bool there, std::uint64_t elements) {
    return there ? vector(elements) : 0;
  };
  if (gpt2) {
    ddr.positions = vector(std::uint64_t{shape.positions} * sizes.width);
  } else {
    ddr.rotated = shape.positions;
    ddr.rotations = vector(std::uint64_t{shape.positions} * 2 * sizes.head);
    ddr.epsilon = vector(sizes.depth);
  }
  const bool biased = gpt2 || shape.llama->qkv_bias;
  const std::uint64_t heads = std::uint64_t{shape.encoder.heads} * sizes.head;
  const std::uint64_t shared = std::uint64_t{shape.kv_heads()} * sizes.head;
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    DdrLayout::Layer layer{};
    layer.norm1 = vector(norm);
    layer.norm2 = vector(norm);
    layer.value_bias = bias(biased, shared);
    layer.key_bias = bias(biased, shared);
    layer.query_bias = bias(biased, heads);
    layer.projection_bias = bias(gpt2, sizes.width);
    layer.hidden_bias = bias(gpt2, sizes.hidden);
    layer.output_bias = bias(gpt2, sizes.width);
    if (machine.matrix.format == Format::kInt8) {
      layer.value_scales = vector(shared);
      layer.key_scales = vector(shared);
      layer.query_scales = vector(heads);
      layer.projection_scales = vector(sizes.width);
      if (!gpt2) layer.gate_scales = vector(sizes.hidden);
      layer.hidden_scales = vector(sizes.hidden);
      layer.output_scales = vector(sizes.width);
    }
    ddr.layers.push_back(layer);
  }
  ddr.norm = vector(norm);
  if (machine.matrix.format == Format::kInt8) ddr.lm_head_scales = vector(sizes.vocabulary);
  if (machine.dfx.lm_head == Placement::kDdr) {
    ddr.lm_head = memory.used();
    take_matrix(memory, machine, sizes.width, part.vocabulary.size());
  }
  ddr.bytes = memory.used();
  return ddr;
}

HbmLayout lay_out_hbm(const GptShape& shape, const hw::Machine& machine, const Sizes& sizes,
                      const Part& part, std::uint32_t texts) {
  // A tile is a beat of all channels, so rows of weights are read whole.
  Allocator memory(std::uint64_t{machine.hbm.channels} * machine.hbm.port_bytes);
  HbmLayout hbm;
  const std::uint32_t head_slices = sizes.head / sizes.columns;
  const std::uint32_t own_heads = part.heads.size(), own_kv = part.kv.size();
  const bool reduces = machine.ring.collective == Collective::kAllReduce;
  const std::uint32_t all_slices = sizes.width / sizes.columns;
  const auto matrix = [&](std::uint32_t inputs, std::uint32_t slices) {
    return take_matrix(memory, machine, inputs, slices);
  };
  hbm.head_bytes = std::uint64_t{sizes.context} * sizes.head * kHalfBytes;
  for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
    HbmLayout::Layer& layer = hbm.layers.emplace_back();
    if (i < part.layers.begin || i >= part.layers.end) continue;
    layer.value = matrix(sizes.width, own_kv * head_slices);
    layer.key = matrix(sizes.width, own_kv * head_slices);
    layer.query = matrix(sizes.width, own_heads * head_slices);
    // A core without heads, or without slices of the hidden layer, adds nothing but zeros.
    layer.projection = reduces ? matrix(std::max(own_heads, 1U) * sizes.head, all_slices)
                               : matrix(shape.encoder.heads * sizes.head, part.projected.size());
    if (shape.llama) layer.gate = matrix(sizes.width, part.hidden.size());
    layer.hidden = matrix(sizes.width, part.hidden.size());
    layer.output =
        reduces ? matrix(round_up(std::max(part.hidden.size(), 1U) * sizes.columns, sizes.depth),
                         all_slices)
                : matrix(sizes.hidden, part.projected.size());
  }
  hbm.lm_head = machine.dfx.lm_head == Placement::kHbm ? matrix(sizes.width, part.vocabulary.size())
                                                       : MatrixOperand{};
  hbm.weight_bytes = memory.used();
  hbm.text_bytes = hbm.head_bytes * own_kv;
  for (std::uint32_t i = part.layers.begin; i < part.layers.end; ++i) {
    hbm.layers[i].keys = memory.take(hbm.text_bytes * texts);
    hbm.layers[i].values = memory.take(hbm.text_bytes * texts);
  }
  hbm.bytes = memory.used();
  return hbm;
}

/// Layers of a core of a pipeline: cuts where so many cores have had their share of all weights.
Range stage_layers(const GptShape& shape, const Sizes& sizes, std::uint32_t cores,
                   std::uint32_t core) {
  const double width = sizes.width;
  const double heads = 2.0 * shape.encoder.heads + 2.0 * shape.kv_heads();
  const double layer = width * (heads * sizes.head + (shape.llama ? 3.0 : 2.0) * sizes.hidden);
  const double head = width * sizes.vocabulary;
  const double all = layer * shape.encoder.layers + head;
  const auto cut = [&](std::uint32_t i) {
    const auto layers = static_cast<std::uint32_t>(std::lround(all * i / cores / layer));
    return i == cores ? shape.encoder.layers : std::min(layers, shape.encoder.layers);
  };
  return {cut(core), cut(core + 1)};
}

void require_room(const char* memory, std::uint64_t needed, std::uint64_t mib, std::uint32_t core) {
  const std::uint64_t room = mib * hw::kMib;
  if (needed <= room) return;
  const std::string key = std::string(memory) + ".mib";
  throw hw::InputError(fmt::format(
      "{}: core {} needs {:.1f} MiB, {:.1f} more than its {} MiB{}, or more cores", key, core,
      static_cast<double>(needed) / hw::kMib, static_cast<double>(needed - room) / hw::kMib, mib,
      hw::memory_advice(key, (needed + hw::kMib - 1) / hw::kMib)));
}

}  // namespace

Sizes::Sizes(const GptShape& shape, const hw::Machine& machine)
    : depth(machine.matrix.depth),
      lanes(machine.matrix.lanes),
      columns(machine.matrix.columns()),
      width(round_up(shape.encoder.width, std::max(depth, columns))),
      head(round_up(shape.head_width(), std::max(depth, columns))),
      hidden(round_up(shape.encoder.hidden, std::max(depth, columns))),
      context(round_up(shape.positions, std::max(depth, lanes))),
      vocabulary(round_up(shape.vocabulary, columns)),
      hidden_unit(shape.llama ? std::max(depth, columns) : columns) {}

Part::Part(const GptShape& shape, const hw::Machine& machine, std::uint32_t core) {
  const Sizes sizes(shape, machine);
  const std::uint32_t cores = machine.dfx.cores;
  if (machine.dfx.parallelism == hw::dfx::Parallelism::kPipelined) {
    layers = stage_layers(shape, sizes, cores, core);
    heads = {0, shape.encoder.heads};
    kv = {0, shape.kv_heads()};
    projected = {0, sizes.width / sizes.columns};
    hidden = {0, sizes.hidden / sizes.columns};
    vocabulary = {0, core + 1 == cores ? sizes.vocabulary / sizes.columns : 0};
    return;
  }
  layers = {0, shape.encoder.layers};
  heads = split(shape.encoder.heads, cores, core);
  const std::uint32_t first = heads.begin / shape.group();
  kv = {first, heads.size() == 0 ? first : ceil_div(heads.end, shape.group())};
  projected = split(sizes.width / sizes.columns, cores, core);
  const Range units = split(sizes.hidden / sizes.hidden_unit, cores, core);
  const std::uint32_t slices = sizes.hidden_unit / sizes.columns;
  hidden = {units.begin * slices, units.end * slices};
  vocabulary = split(sizes.vocabulary / sizes.columns, cores, core);
}

CoreLayout lay_out(const GptShape& shape, const hw::Machine& machine, std::uint32_t core,
                   std::uint32_t texts) {
  const Sizes sizes(shape, machine);
  if (sizes.head > machine.matrix.partial_sums * sizes.lanes) {
    throw hw::InputError(
        fmt::format("matrix.partial_sums: found {}, expected at least {}, for heads of {}",
                    machine.matrix.partial_sums, sizes.head / sizes.lanes, sizes.head));
  }
  const Part part(shape, machine, core);
  CoreLayout layout{part, lay_out_ddr(shape, machine, sizes, part),
                    lay_out_hbm(shape, machine, sizes, part, texts)};
  if (machine.dfx.lm_head == Placement::kDdr) {
    MatrixOperand& head = layout.hbm.lm_head;
    head = {layout.ddr.lm_head,
            true,
            machine.matrix.format == Format::kInt8,
            sizes.width / sizes.depth,
            part.vocabulary.size(),
            machine.matrix.partial_sums};
  }
  require_room("hbm", layout.hbm.bytes, machine.hbm.mib, core);
  require_room("dram", layout.ddr.bytes, machine.dram.mib, core);
  return layout;
}

}  // namespace systole::mapper::dfx

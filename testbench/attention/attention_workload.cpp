#include "testbench/attention/attention_workload.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "hw/attention/mask_codec.h"
#include "hw/description/machine_text.h"
#include "hw/function/softmax.h"
#include "hw/kernel/gemm.h"
#include "hw/postop/stage_constants.h"
#include "hw/program/program_image.h"
#include "model/graph/stages.h"

namespace systole::testbench {
namespace {

constexpr std::uint64_t kInputSeed = 0x5397, kDecoderSeed = 0xdec0de;
constexpr std::uint64_t kAlignment = 4096;
constexpr std::uint32_t kSoftmaxChain = 0, kOutputChain = 1;
/// Real standard deviation of the scores: rows neither uniform nor one-hot.
constexpr double kScoreDeviation = 2.0;
/// Of a uniform int8.
constexpr double kOperandDeviation = 73.9;

/// Heads of Q and of K in memory.
std::size_t stored_heads(const AttentionShape& shape) {
  return shape.latent_heads == 0 ? shape.heads : shape.latent_heads;
}

hw::Chain softmax_chain(std::size_t dim, const hw::Machine::Datapath& datapath) {
  if (datapath.softmax != hw::SoftmaxMode::kDeferred || datapath.softmax_bits > 8) {
    throw hw::InputError(
        "attention engines: datapath.softmax: expected deferred, and datapath.softmax_bits at "
        "most 8");
  }
  const double deviation =
      std::sqrt(static_cast<double>(dim)) * kOperandDeviation * kOperandDeviation;
  hw::SoftmaxOptions options;
  options.output_bits = datapath.softmax_bits;
  options.multiplier_bits = datapath.multiplier_bits;
  const hw::SoftmaxConstants constants =
      hw::make_softmax_constants(kScoreDeviation / deviation, options);
  return {{model::softmax_stage(datapath, constants.score, options.fraction_bits,
                                constants.exp_to_code)},
          hw::DType::kU8};
}

/// The weighted mean of V comes with fraction bits, which the requantisation takes off.
hw::Chain output_chain(const hw::Machine::Datapath& datapath) {
  const hw::Dyadic factor = hw::make_dyadic(
      std::ldexp(1.0, -static_cast<int>(hw::kDeferredFractionBits)), datapath.multiplier_bits);
  return {{model::divide_row_sum_stage(), model::requantise_stage(factor, 8, datapath.rounding)},
          hw::DType::kS8};
}

std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t word = random();
    for (std::size_t j = i; j < std::min(count, i + 8); ++j, word >>= 8U) {
      bytes[j] = static_cast<std::uint8_t>(word);
    }
  }
  return bytes;
}

/// A decoder whose outputs spread like a uniform int8, with a bias that can be seen.
hw::HeadMix decoder(std::uint64_t seed, const AttentionShape& shape,
                    const hw::Machine::Datapath& datapath) {
  const std::vector<std::uint8_t> random =
      random_bytes(seed, shape.heads * (shape.latent_heads + 1));
  const double deviation = std::sqrt(static_cast<double>(shape.latent_heads)) * kOperandDeviation;
  hw::HeadMix mix;
  mix.in_heads = static_cast<std::uint32_t>(shape.latent_heads);
  mix.out_heads = static_cast<std::uint32_t>(shape.heads);
  mix.weights.assign(random.begin(), random.end() - static_cast<std::ptrdiff_t>(shape.heads));
  for (std::size_t head = 0; head < shape.heads; ++head) {
    mix.bias.push_back(16 * static_cast<std::int8_t>(random[mix.weights.size() + head]));
  }
  mix.factors.assign(shape.heads, hw::make_dyadic(1.0 / deviation, datapath.multiplier_bits));
  mix.rounding = datapath.rounding;
  return mix;
}

/// Places things one after the other in DRAM.
class Placement {
 public:
  std::uint64_t place(std::uint64_t bytes) {
    const std::uint64_t address = next_;
    next_ = (next_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
    return address;
  }
  [[nodiscard]] std::uint64_t end() const { return next_; }

 private:
  std::uint64_t next_ = 0;
};

void add_decoders(std::size_t layer, const hw::Machine& machine, AttentionWorkload& workload) {
  for (const std::size_t operand : {0U, 1U}) {
    workload.program.mixes.push_back(
        decoder(kDecoderSeed + 2 * layer + operand, workload.shape, machine.datapath));
  }
  workload.program.commands.back().as<hw::cmd::Attention>()->decoders =
      static_cast<std::uint16_t>(2 * layer);
}

void add_layer(std::size_t layer, Placement& dram, bool functional, AttentionWorkload& workload) {
  const AttentionShape& shape = workload.shape;
  const std::uint64_t width = shape.heads * shape.value_dim();
  const std::uint64_t stored_width = stored_heads(shape) * shape.dim;
  AttentionWorkload::Addresses at{};
  at.query = dram.place(shape.queries * stored_width);
  at.key = dram.place(shape.keys * stored_width);
  at.value = dram.place(shape.keys * width);
  at.out = dram.place(shape.queries * width);
  hw::LayerMask mask;
  mask.bytes = hw::encode_mask(workload.layers[layer]);
  mask.address = dram.place(mask.bytes.size());
  if (functional) {
    workload.operands.push_back(
        {at.query, random_bytes(kInputSeed + 3 * layer, shape.queries * stored_width)});
    workload.operands.push_back(
        {at.key, random_bytes(kInputSeed + 3 * layer + 1, shape.keys * stored_width)});
    workload.operands.push_back(
        {at.value, random_bytes(kInputSeed + 3 * layer + 2, shape.keys * width)});
  }
  const auto narrow = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  hw::cmd::Attention attention;
  attention.query = {at.query, narrow(stored_width)};
  attention.key = {at.key, narrow(stored_width)};
  attention.value = {at.value, narrow(width)};
  attention.out = {at.out, narrow(width)};
  attention.queries = narrow(shape.queries);
  attention.keys = narrow(shape.keys);
  attention.heads = narrow(shape.heads);
  attention.k = narrow(shape.dim);
  attention.n = narrow(shape.value_dim());
  attention.chain = kOutputChain;
  attention.softmax = kSoftmaxChain;
  attention.mask = narrow(layer);
  workload.program.commands.push_back({attention, narrow(layer)});
  const std::string name = fmt::format("layer{}", layer);
  std::uint64_t cells = 0;
  for (const hw::SparseHead& head : workload.layers[layer]) cells += head.kept();
  workload.program.operators.push_back({name + ".attention", name + ".context",
                                        hw::Operator::Place::kDram, hw::DType::kS8, at.out,
                                        narrow(width), narrow(shape.queries), narrow(width),
                                        cells * (shape.dim + shape.value_dim())});
  workload.program.masks.push_back(std::move(mask));
  workload.addresses.push_back(at);
}

const std::vector<std::uint8_t>& bytes_at(const AttentionWorkload& workload,
                                          std::uint64_t address) {
  for (const hw::MemoryPiece& piece : workload.operands) {
    if (piece.address == address) return piece.bytes;
  }
  throw std::invalid_argument("attention workload without operands");
}

/// Q or K of all heads, [tokens][heads * dim]. Element by element, knowing nothing of lines.
std::vector<std::int8_t> decoded(const AttentionWorkload& workload, std::uint64_t address,
                                 std::size_t mix_index) {
  const std::vector<std::uint8_t>& stored = bytes_at(workload, address);
  std::vector<std::int8_t> rows(stored.begin(), stored.end());
  const AttentionShape& shape = workload.shape;
  if (shape.latent_heads == 0) return rows;
  const hw::HeadMix& mix = workload.program.mixes[mix_index];
  std::vector<std::int8_t> all;
  for (auto token = rows.begin(); token != rows.end();
       token += static_cast<std::ptrdiff_t>(shape.latent_heads * shape.dim)) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      for (std::size_t feature = 0; feature < shape.dim; ++feature) {
        std::int32_t sum = mix.bias[head];
        for (std::size_t latent = 0; latent < shape.latent_heads; ++latent) {
          sum += mix.weights[head * shape.latent_heads + latent] *
                 token[static_cast<std::ptrdiff_t>(latent * shape.dim + feature)];
        }
        all.push_back(static_cast<std::int8_t>(
            hw::requantise(sum, mix.factors[head], mix.rounding, hw::symmetric_range(8))));
      }
    }
  }
  return all;
}

std::vector<std::uint8_t> keep_cells(const hw::SparseHead& head) {
  std::vector<std::uint8_t> keep(head.queries * head.keys, 0);
  for (std::size_t c = 0; c < head.dense_columns.size(); ++c) {
    for (std::size_t q = 0; q < head.queries; ++q) {
      keep[q * head.keys + head.dense_columns[c]] = head.dense_keep[c * head.queries + q] ? 1 : 0;
    }
  }
  for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
    for (std::uint32_t i = head.column_pointers[c]; i < head.column_pointers[c + 1]; ++i) {
      keep[head.row_indices[i] * head.keys + head.sparse_columns[c]] = 1;
    }
  }
  return keep;
}

}  // namespace

AttentionWorkload make_attention_workload(const AttentionShape& shape,
                                          std::vector<std::vector<hw::SparseHead>> layers,
                                          const hw::Machine& machine, bool functional) {
  AttentionWorkload workload;
  workload.shape = shape;
  workload.layers = std::move(layers);
  workload.program.chains = {softmax_chain(shape.dim, machine.datapath),
                             output_chain(machine.datapath)};
  Placement dram;
  for (std::size_t layer = 0; layer < workload.layers.size(); ++layer) {
    add_layer(layer, dram, functional, workload);
    if (shape.latent_heads != 0) add_decoders(layer, machine, workload);
  }
  workload.program.commands.push_back({});
  workload.program_address = dram.place(hw::encode_program(workload.program).size());
  const std::uint64_t available = std::uint64_t{machine.dram.mib} << 20U;
  constexpr std::uint64_t kAddressed = std::uint64_t{1} << 32U;
  if (dram.end() > std::min(available, kAddressed)) {
    throw hw::InputError(fmt::format(
        "{} bytes of Q, K, V, outputs and masks, but dram.mib = {}{}", dram.end(), machine.dram.mib,
        dram.end() > kAddressed
            ? "; their addresses have 32 bits"
            : hw::memory_advice("dram.mib", (dram.end() + hw::kMib - 1) / hw::kMib)));
  }
  hw::check_program(workload.program, machine, available);
  return workload;
}

hw::MemoryImage memory_image(const AttentionWorkload& workload) {
  hw::MemoryImage image = workload.operands;
  for (const hw::LayerMask& mask : workload.program.masks) {
    image.push_back({mask.address, mask.bytes, true});
  }
  image.push_back({workload.program_address, hw::encode_program(workload.program), true});
  return image;
}

std::vector<std::uint8_t> masked_reference(const AttentionWorkload& workload, std::size_t layer) {
  const AttentionShape& shape = workload.shape;
  const std::size_t value_dim = shape.value_dim();
  const std::size_t width = shape.heads * value_dim;
  const AttentionWorkload::Addresses& at = workload.addresses[layer];
  const std::vector<std::int8_t> query = decoded(workload, at.query, 2 * layer);
  const std::vector<std::int8_t> key = decoded(workload, at.key, 2 * layer + 1);
  const hw::SoftmaxConstants constants =
      hw::softmax_constants(workload.program.chains[kSoftmaxChain].stages.front());
  const hw::Chain& chain = workload.program.chains[kOutputChain];
  std::vector<std::uint8_t> out(shape.queries * width);
  std::vector<std::int32_t> scores(shape.queries * shape.keys);
  std::vector<std::int32_t> sums(shape.queries * value_dim);
  std::vector<std::uint8_t> codes(scores.size());
  std::vector<std::uint32_t> divisors(shape.queries);
  for (std::size_t head = 0; head < shape.heads; ++head) {
    const std::size_t column = head * value_dim;
    hw::GemmArgs sddmm;
    sddmm.a = query.data() + head * shape.dim;
    sddmm.b = key.data() + head * shape.dim;
    sddmm.b_transposed = true;
    sddmm.lda = sddmm.ldb = shape.heads * shape.dim;
    sddmm.c = scores.data();
    sddmm.ldc = shape.keys;
    sddmm.m = shape.queries;
    sddmm.n = shape.keys;
    sddmm.k = shape.dim;
    hw::gemm(sddmm);
    const std::vector<std::uint8_t> keep = keep_cells(workload.layers[layer][head]);
    for (std::size_t q = 0; q < shape.queries; ++q) {
      const std::size_t row = q * shape.keys;
      divisors[q] = hw::softmax_row(scores.data() + row, keep.data() + row, shape.keys, constants,
                                    codes.data() + row);
    }
    hw::GemmArgs spmm;
    spmm.a = codes.data();
    spmm.a_unsigned = true;
    spmm.lda = shape.keys;
    spmm.b = reinterpret_cast<const std::int8_t*>(bytes_at(workload, at.value).data()) + column;
    spmm.ldb = width;
    spmm.c = sums.data();
    spmm.ldc = value_dim;
    spmm.m = shape.queries;
    spmm.n = value_dim;
    spmm.k = shape.keys;
    hw::gemm(spmm);
    hw::ChainOperands operands;
    operands.accumulator = sums.data();
    operands.accumulator_pitch = value_dim;
    operands.row_statistics = divisors.data();
    operands.out = out.data() + column;
    operands.out_pitch = width;
    operands.rows = shape.queries;
    operands.cols = value_dim;
    hw::apply_chain(chain, operands);
  }
  return out;
}

}  // namespace systole::testbench

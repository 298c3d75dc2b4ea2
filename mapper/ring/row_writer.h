#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/number/half.h"
#include "hw/ring/instruction.h"
#include "hw/ring/int8_gemv.h"
#include "hw/ring/pass.h"
#include "mapper/ring/exchanges.h"
#include "mapper/ring/pass.h"

namespace systole::mapper::dfx {

/// Appends instructions to a pass, all of the phase that is set.
class InstructionWriter {
 protected:
  using Instruction = hw::dfx::Instruction;
  using Opcode = hw::dfx::Opcode;
  using Second = hw::dfx::Second;

  Instruction& put(Opcode op) {
    Instruction& instruction = pass_.instructions.emplace_back();
    instruction.op = op;
    instruction.phase = phase_;
    return instruction;
  }
  Instruction& vector(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint32_t elements) {
    Instruction& instruction = put(op);
    instruction.dst = dst;
    instruction.src = src;
    instruction.elements = elements;
    return instruction;
  }
  void with_vector(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint32_t other,
                   std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kVector;
    instruction.other = other;
  }
  void with_scalar(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint32_t scalar,
                   std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kScalar;
    instruction.other = scalar;
  }
  void with_constant(Opcode op, std::uint32_t dst, std::uint32_t src, double constant,
                     std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kConstant;
    instruction.constant = hw::to_half(constant);
  }
  void with_memory(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint64_t memory,
                   std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kMemory;
    instruction.memory = memory;
  }
  void accumulate(std::uint32_t result, std::uint32_t src, double factor, std::uint32_t elements) {
    Instruction& instruction = vector(Opcode::kAccum, 0, src, elements);
    instruction.result = result;
    instruction.constant = hw::to_half(factor);
  }
  void scalar(Opcode op, std::uint32_t result, std::uint32_t from, double constant) {
    Instruction& instruction = put(op);
    instruction.result = result;
    instruction.second = Second::kScalar;
    instruction.other = from;
    instruction.constant = hw::to_half(constant);
  }

  hw::dfx::Phase phase_ = hw::dfx::Phase::kEmbedding;
  hw::dfx::Pass pass_;
};

/// Writes what tokens that share weights go through: products, norms, attention.
class RowWriter : protected InstructionWriter {
 protected:
  using DdrLayer = DdrLayout::Layer;
  using HbmLayer = HbmLayout::Layer;
  using MatrixOperand = hw::dfx::MatrixOperand;
  using Phase = hw::dfx::Phase;

  /// Added to the variance by GPT-2.
  static constexpr double kNormEpsilon = 1e-5;

  // Scalars: those of a LayerNorm, two of each row that is quantised, then three of each head.
  enum : std::uint32_t { kMean, kVariance, kDeviation, kScale, kPeak = kMean };
  static constexpr std::uint32_t kInverse = kScale + kMostRows;
  static constexpr std::uint32_t kHeadScalars = kInverse + kMostRows;

  explicit RowWriter(const PassMaker& maker)
      : maker_(maker),
        sizes_(maker.sizes_),
        at_(maker.registers_),
        part_(maker.layout_.part),
        cores_(maker.machine_.dfx.cores) {}

  [[nodiscard]] std::uint32_t rows() const { return static_cast<std::uint32_t>(rows_.size()); }
  [[nodiscard]] std::uint32_t row(std::uint32_t element, std::uint32_t r) const {
    return element + r * at_.pitch;
  }

  Instruction& product(Opcode op, std::uint32_t dst, std::uint32_t src,
                       const MatrixOperand& weights) {
    Instruction& instruction = put(op);
    instruction.dst = dst;
    instruction.src = src;
    instruction.weights = weights;
    instruction.elements = weights.slices * sizes_.columns;
    return instruction;
  }
  /// Where weights are integers, the vector that they are multiplied with becomes integers too.
  void quantise(std::uint32_t src, std::uint32_t elements, std::uint32_t r) {
    if (maker_.machine_.matrix.format != hw::dfx::Format::kInt8) return;
    Instruction& largest = vector(Opcode::kAbsMax, 0, src, elements);
    largest.result = kScale + r;
    largest.constant = hw::to_half(1.0 / hw::kInt8Limit);
    scalar(Opcode::kRecip, kInverse + r, kScale + r, 0.0);
    with_scalar(Opcode::kQuantise, src, src, kInverse + r, elements);
  }
  void quantise_rows(std::uint32_t src, std::uint32_t elements) {
    for (std::uint32_t r = 0; r < rows(); ++r) quantise(row(src, r), elements, r);
  }
  /// Of all rows. `bias`: address, 0 for none; `column`: the first one's place among bias
  /// and scales.
  Instruction& conv(std::uint32_t dst, std::uint32_t src, const MatrixOperand& weights,
                    std::uint64_t bias, std::uint64_t scales, std::uint32_t column) {
    Instruction& instruction = product(Opcode::kConv1d, dst, src, weights);
    instruction.rows = rows();
    instruction.pitch = at_.pitch;
    instruction.has_bias = bias != 0;
    if (bias != 0) instruction.memory = bias + std::uint64_t{column} * hw::kHalfBytes;
    instruction.scales = scales + std::uint64_t{column} * hw::kHalfBytes;
    instruction.other = kScale;
    return instruction;
  }
  /// What the weights of a layer, or of the vocabulary, are multiplied with.
  void norm(std::uint64_t parameters, std::uint32_t r) {
    phase_ = Phase::kLayerNorm;
    maker_.shape_.llama ? rms_norm(parameters, r) : layer_norm(parameters, r);
  }

  /// Of the stream. The squares are of deviations scaled by a power of two, near the root of their
  /// number: FP16 would not hold the sum of the squares themselves.
  void layer_norm(std::uint64_t parameters, std::uint32_t r) {
    const std::uint32_t n = maker_.shape_.encoder.width, x = row(at_.normalised, r),
                        t = row(at_.scratch, r);
    const std::uint64_t beta = parameters + std::uint64_t{sizes_.width} * hw::kHalfBytes;
    const double scale = std::exp2(-std::round(std::log2(n) / 2));
    accumulate(kMean, row(at_.stream, r), 1.0 / n, n);
    with_scalar(Opcode::kSub, x, row(at_.stream, r), kMean, n);
    with_constant(Opcode::kMul, t, x, scale, n);
    with_vector(Opcode::kMul, t, t, t, n);
    accumulate(kVariance, t, 1.0 / (n * scale * scale), n);
    scalar(Opcode::kRecipSqrt, kDeviation, kVariance, kNormEpsilon);
    with_scalar(Opcode::kMul, x, x, kDeviation, n);
    with_memory(Opcode::kMul, x, x, parameters, n);
    with_memory(Opcode::kAdd, x, x, beta, n);
  }

  /// Of the stream and the root of width x epsilon after it. All is divided by the largest of them
  /// before it is squared: a stream may reach thousands, whose squares FP16 would not hold.
  void rms_norm(std::uint64_t parameters, std::uint32_t r) {
    const std::uint32_t n = sizes_.stream(maker_.shape_), x = row(at_.normalised, r),
                        t = row(at_.scratch, r);
    vector(Opcode::kAbsMax, 0, row(at_.stream, r), n).result = kPeak;
    pass_.instructions.back().constant = hw::kHalfOne;
    scalar(Opcode::kRecip, kVariance, kPeak, 0.0);
    with_scalar(Opcode::kMul, x, row(at_.stream, r), kVariance, n);
    with_vector(Opcode::kMul, t, x, x, n);
    accumulate(kVariance, t, 1.0 / maker_.shape_.encoder.width, n);
    scalar(Opcode::kRecipSqrt, kDeviation, kVariance, 0.0);
    with_scalar(Opcode::kMul, x, x, kDeviation, sizes_.width);
    with_memory(Opcode::kMul, x, x, parameters, sizes_.width);
  }

  /// Heads of a Llama by the positions of their rows.
  void rotate(std::uint32_t src, std::uint32_t heads) {
    if (!maker_.shape_.llama) return;
    const std::uint64_t angle = 2 * std::uint64_t{sizes_.head} * hw::kHalfBytes;
    for (std::uint32_t r = 0; r < rows(); ++r) {
      with_memory(Opcode::kRotate, row(src, r), row(src, r),
                  maker_.layout_.ddr.rotations + rows_[r].position * angle, sizes_.head);
      pass_.instructions.back().heads = heads;
    }
  }

  void projections(const DdrLayer& ddr, const HbmLayer& hbm) {
    if (part_.heads.size() == 0) return;
    quantise_rows(at_.normalised, sizes_.width);
    const std::uint32_t column = part_.heads.begin * sizes_.head;
    const std::uint32_t shared = part_.kv.begin * sizes_.head;
    const auto value = [&] {
      conv(at_.value, at_.normalised, hbm.value, ddr.value_bias, ddr.value_scales, shared);
      cache(Opcode::kWriteValues, at_.value, hbm.values);
    };
    const auto key = [&] {
      conv(at_.key, at_.normalised, hbm.key, ddr.key_bias, ddr.key_scales, shared);
      rotate(at_.key, part_.kv.size());
      cache(Opcode::kWriteKeys, at_.key, hbm.keys);
    };
    const auto query = [&] {
      conv(at_.query, at_.normalised, hbm.query, ddr.query_bias, ddr.query_scales, column);
      rotate(at_.query, part_.heads.size());
    };
    if (maker_.machine_.dfx.projections == hw::dfx::ProjectionOrder::kValueFirst) {
      value();
      key();
      query();
    } else {
      query();
      key();
      value();
    }
  }
  void cache(Opcode op, std::uint32_t src, std::uint64_t memory) {
    for (std::uint32_t r = 0; r < rows(); ++r) {
      Instruction& write = put(op);
      write.src = row(src, r);
      write.heads = part_.kv.size();
      write.elements = sizes_.head;
      write.token = rows_[r].position;
      write.memory = memory + of_text(r);
      write.head_bytes = maker_.layout_.hbm.head_bytes;
    }
  }

  /// Bytes from a layer's caches to those of a row's text.
  [[nodiscard]] std::uint64_t of_text(std::uint32_t r) const {
    return rows_[r].text * maker_.layout_.hbm.text_bytes;
  }

  void attention(const HbmLayer& hbm, std::uint32_t r) {
    const std::uint32_t heads = part_.heads.size();
    constexpr std::uint32_t kSteps = 7;
    const bool serial = maker_.machine_.dfx.heads == hw::dfx::HeadOrder::kSerial;
    for (std::uint32_t i = 0; i < heads * kSteps; ++i) {
      const std::uint32_t head = serial ? i / kSteps : i % heads;
      attention_step(hbm, r, head, serial ? i % kSteps : i / heads);
    }
  }

  void attention_step(const HbmLayer& hbm, std::uint32_t r, std::uint32_t head,
                      std::uint32_t step) {
    const std::uint32_t tokens = rows_[r].position + 1;
    const std::uint32_t padded = round_up(tokens, sizes_.depth);
    const std::uint32_t scores = row(at_.scores + head * sizes_.context, r);
    const std::uint32_t maximum = kHeadScalars + 3 * head, sum = maximum + 1, inverse = sum + 1;
    const std::uint32_t shared =
        (part_.heads.begin + head) / maker_.shape_.group() - part_.kv.begin;
    const std::uint64_t offset = of_text(r) + shared * maker_.layout_.hbm.head_bytes;
    switch (step) {
      case 0: {
        MatrixOperand keys{hbm.keys + offset,
                           false,
                           false,
                           sizes_.head / sizes_.depth,
                           ceil_div(tokens, sizes_.lanes),
                           1};
        Instruction& product =
            this->product(Opcode::kMaskedMm, scores, row(at_.query + head * sizes_.head, r), keys);
        product.elements = tokens;
        product.result = maximum;
        product.constant =
            hw::to_half(1.0 / std::sqrt(static_cast<double>(maker_.shape_.head_width())));
        return;
      }
      case 1:
        return with_scalar(Opcode::kSub, scores, scores, maximum, padded);
      case 2:
        vector(Opcode::kExp, scores, scores, padded);
        return;
      case 3:
        return accumulate(sum, scores, 1.0, padded);
      case 4:
        return scalar(Opcode::kRecip, inverse, sum, 0.0);
      case 5:
        return with_scalar(Opcode::kMul, scores, scores, inverse, padded);
      default: {
        const std::uint32_t slices = sizes_.head / sizes_.lanes;
        MatrixOperand values{hbm.values + offset,   false,  false,
                             padded / sizes_.depth, slices, slices};
        product(Opcode::kMm, row(at_.attended + (part_.heads.begin + head) * sizes_.head, r),
                scores, values);
      }
    }
  }

  const PassMaker& maker_;
  const Sizes& sizes_;
  const Registers& at_;
  const Part& part_;
  const std::uint32_t cores_;
  std::vector<PassRow> rows_;  ///< that instructions are written for
};

}  // namespace systole::mapper::dfx

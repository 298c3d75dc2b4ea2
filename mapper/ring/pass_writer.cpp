#include <algorithm>
#include <cmath>
#include <utility>

#include "hw/ring/int8_gemv.h"
#include "mapper/ring/exchanges.h"
#include "mapper/ring/instruction_writer.h"
#include "mapper/ring/pass.h"

namespace systole::mapper::dfx {

using hw::kHalfBytes;
using hw::dfx::Collective;
using hw::dfx::HeadOrder;
using hw::dfx::Instruction;
using hw::dfx::MatrixOperand;
using hw::dfx::Opcode;
using hw::dfx::Phase;
using hw::dfx::ProjectionOrder;

namespace {

/// Added to the variance by GPT-2.
constexpr double kNormEpsilon = 1e-5;

// Scalars: those of a LayerNorm, two of each row that is quantised, then three of each head.
enum : std::uint32_t { kMean, kVariance, kDeviation, kScale };
constexpr std::uint32_t kInverse = kScale + kMostRows;
constexpr std::uint32_t kHeadScalars = kInverse + kMostRows;

}  // namespace

/// Writes one pass.
class PassWriter : private InstructionWriter {
 public:
  PassWriter(const PassMaker& maker, std::vector<PassRow> rows)
      : maker_(maker),
        sizes_(maker.sizes_),
        at_(maker.registers_),
        part_(maker.layout_.part),
        cores_(maker.machine_.dfx.cores),
        all_(std::move(rows)),
        reduces_(maker.machine_.ring.collective == Collective::kAllReduce) {}

  Pass write(std::size_t first_logits) {
    if (maker_.is_pipelined()) {
      stages(first_logits);
    } else {
      rows_ = all_;
      exchanges();
      for (std::uint32_t r = 0; r < rows(); ++r) embed(r);
      for (std::uint32_t i = 0; i < maker_.shape_.encoder.layers; ++i) layer(i);
      if (first_logits < rows_.size())
        output_vocabulary(static_cast<std::uint32_t>(first_logits), 0);
    }
    for (std::size_t r = first_logits; r < all_.size(); ++r) {
      gather_winners(static_cast<std::uint32_t>(r - first_logits));
    }
    drop_empty_products();
    return std::move(pass_);
  }

 private:
  [[nodiscard]] std::uint32_t rows() const { return static_cast<std::uint32_t>(rows_.size()); }

  /// In each step a core has the row that the core before it had one step ago. All hand on at the
  /// end of a step, so that its stream is with the next core when that begins.
  void stages(std::size_t first_logits) {
    const std::uint32_t core = maker_.core_, width = sizes_.width;
    pass_.exchanges.push_back({at_.handed, bounds(cores_, cores_, width), false});
    const std::size_t steps = all_.size() + cores_ - 1;
    for (std::size_t step = 0; step < steps; ++step) {
      if (step >= core && step - core < all_.size()) {
        const std::size_t number = step - core;
        rows_ = {all_[number]};
        if (core == 0) {
          embed(0);
        } else {
          phase_ = Phase::kSync;
          with_vector(Opcode::kLoad, at_.stream, 0, at_.handed + (core - 1) * width, width);
        }
        for (std::uint32_t i = part_.layers.begin; i < part_.layers.end; ++i) layer(i);
        if (core + 1 < cores_) {
          phase_ = Phase::kSync;
          with_vector(Opcode::kLoad, at_.handed + core * width, 0, at_.stream, width);
        } else if (number >= first_logits) {
          output_vocabulary(0, static_cast<std::uint32_t>(number - first_logits));
        }
      }
      if (cores_ == 1 || step + 1 == steps) continue;
      phase_ = Phase::kSync;
      put(Opcode::kSync).exchange = 0;
    }
  }

  /// Those of every row.
  void exchanges() {
    for (std::uint32_t r = 0; r < rows(); ++r) {
      for (Exchange exchange : maker_.exchanges_) {
        exchange.base += r * at_.pitch;
        pass_.exchanges.push_back(std::move(exchange));
      }
    }
  }

  /// Of more cores than slices some have nothing to do in a product.
  void drop_empty_products() {
    std::vector<Instruction>& all = pass_.instructions;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const Instruction& each) {
                               return (each.op == Opcode::kConv1d || each.op == Opcode::kMm) &&
                                      each.weights.slices == 0;
                             }),
              all.end());
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
  /// Of all rows. `column`: the first one's place among bias and scales.
  Instruction& conv(std::uint32_t dst, std::uint32_t src, const MatrixOperand& weights,
                    std::uint64_t bias, std::uint64_t scales, std::uint32_t column) {
    Instruction& instruction = product(Opcode::kConv1d, dst, src, weights);
    instruction.rows = rows();
    instruction.pitch = at_.pitch;
    instruction.has_bias = true;
    instruction.memory = bias + std::uint64_t{column} * kHalfBytes;
    instruction.scales = scales + std::uint64_t{column} * kHalfBytes;
    instruction.other = kScale;
    return instruction;
  }
  void sync(std::uint32_t exchange) {
    if (cores_ == 1 || maker_.is_pipelined()) return;
    phase_ = Phase::kSync;
    for (std::uint32_t r = 0; r < rows(); ++r) {
      put(Opcode::kSync).exchange = r * kExchanges + exchange;
    }
  }
  [[nodiscard]] std::uint32_t row(std::uint32_t element, std::uint32_t r) const {
    return element + r * at_.pitch;
  }

  void embed(std::uint32_t r) {
    phase_ = Phase::kEmbedding;
    const DdrLayout& ddr = maker_.layout_.ddr;
    const std::uint64_t row_bytes = std::uint64_t{sizes_.width} * kHalfBytes;
    with_memory(Opcode::kLoad, row(at_.stream, r), 0, ddr.words + rows_[r].id * row_bytes,
                sizes_.width);
    with_memory(Opcode::kAdd, row(at_.stream, r), row(at_.stream, r),
                ddr.positions + rows_[r].position * row_bytes, sizes_.width);
  }

  /// Of the stream. The squares are of deviations scaled by a power of two, near the root of their
  /// number: FP16 would not hold the sum of the squares themselves.
  void norm(std::uint64_t parameters, std::uint32_t r) {
    phase_ = Phase::kLayerNorm;
    const std::uint32_t n = maker_.shape_.encoder.width, x = row(at_.normalised, r),
                        t = row(at_.scratch, r);
    const std::uint64_t beta = parameters + std::uint64_t{sizes_.width} * kHalfBytes;
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

  void layer(std::uint32_t index) {
    const DdrLayout::Layer& ddr = maker_.layout_.ddr.layers[index];
    const HbmLayout::Layer& hbm = maker_.layout_.hbm.layers[index];
    for (std::uint32_t r = 0; r < rows(); ++r) norm(ddr.norm1, r);
    phase_ = Phase::kAttention;
    projections(ddr, hbm);
    for (std::uint32_t r = 0; r < rows(); ++r) attention(hbm, r);
    if (!reduces_) sync(kAttended);
    phase_ = Phase::kAttention;
    // Of the cores that add up, each has the heads that it needs, and one of them the bias.
    const bool biased = !reduces_ || maker_.core_ == 0;
    const std::uint32_t own_head = part_.heads.begin * sizes_.head;
    const std::uint32_t first = reduces_ ? 0 : part_.projected.begin * sizes_.columns;
    const std::uint32_t attended = at_.attended + (reduces_ ? own_head : 0);
    quantise_rows(attended, hbm.projection.k_tiles * sizes_.depth);
    conv(at_.projected + first, attended, hbm.projection, ddr.projection_bias,
         ddr.projection_scales, first)
        .has_bias = biased;
    sync(kProjected);
    residual();
    for (std::uint32_t r = 0; r < rows(); ++r) norm(ddr.norm2, r);
    phase_ = Phase::kFeedForward;
    const std::uint32_t hidden = part_.hidden.begin * sizes_.columns;
    quantise_rows(at_.normalised, sizes_.width);
    conv(at_.hidden + (reduces_ ? 0 : hidden), at_.normalised, hbm.hidden, ddr.hidden_bias,
         ddr.hidden_scales, hidden)
        .gelu = true;
    if (!reduces_) sync(kHidden);
    phase_ = Phase::kFeedForward;
    quantise_rows(at_.hidden, hbm.output.k_tiles * sizes_.depth);
    conv(at_.projected + first, at_.hidden, hbm.output, ddr.output_bias, ddr.output_scales, first)
        .has_bias = biased;
    sync(kOutput);
    residual();
  }

  void residual() {
    phase_ = Phase::kResidual;
    for (std::uint32_t r = 0; r < rows(); ++r) {
      with_vector(Opcode::kAdd, row(at_.stream, r), row(at_.stream, r), row(at_.projected, r),
                  sizes_.width);
    }
  }

  void projections(const DdrLayout::Layer& ddr, const HbmLayout::Layer& hbm) {
    if (part_.heads.size() == 0) return;
    quantise_rows(at_.normalised, sizes_.width);
    const std::uint32_t column = part_.heads.begin * sizes_.head;
    const auto value = [&] {
      conv(at_.value, at_.normalised, hbm.value, ddr.value_bias, ddr.value_scales, column);
      cache(Opcode::kWriteValues, at_.value, hbm.values);
    };
    const auto key = [&] {
      conv(at_.key, at_.normalised, hbm.key, ddr.key_bias, ddr.key_scales, column);
      cache(Opcode::kWriteKeys, at_.key, hbm.keys);
    };
    const auto query = [&] {
      conv(at_.query, at_.normalised, hbm.query, ddr.query_bias, ddr.query_scales, column);
    };
    if (maker_.machine_.dfx.projections == ProjectionOrder::kValueFirst) {
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
      write.heads = part_.heads.size();
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

  void attention(const HbmLayout::Layer& hbm, std::uint32_t r) {
    const std::uint32_t heads = part_.heads.size();
    constexpr std::uint32_t kSteps = 7;
    const bool serial = maker_.machine_.dfx.heads == HeadOrder::kSerial;
    for (std::uint32_t i = 0; i < heads * kSteps; ++i) {
      const std::uint32_t head = serial ? i / kSteps : i % heads;
      attention_step(hbm, r, head, serial ? i % kSteps : i / heads);
    }
  }

  void attention_step(const HbmLayout::Layer& hbm, std::uint32_t r, std::uint32_t head,
                      std::uint32_t step) {
    const std::uint32_t tokens = rows_[r].position + 1;
    const std::uint32_t padded = round_up(tokens, sizes_.depth);
    const std::uint32_t scores = row(at_.scores + head * sizes_.context, r);
    const std::uint32_t maximum = kHeadScalars + 3 * head, sum = maximum + 1, inverse = sum + 1;
    const std::uint64_t offset = of_text(r) + head * maker_.layout_.hbm.head_bytes;
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
            hw::to_half(1.0 / std::sqrt(static_cast<double>(maker_.shape_.encoder.width) /
                                        maker_.shape_.encoder.heads));
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

  /// Of the rows from `first` on; `number`: which of the rows with logits that one is.
  void output_vocabulary(std::uint32_t first, std::uint32_t number) {
    for (std::uint32_t r = first; r < rows(); ++r) norm(maker_.layout_.ddr.norm, r);
    phase_ = Phase::kLmHead;
    for (std::uint32_t r = first; r < rows(); ++r) {
      quantise(row(at_.normalised, r), sizes_.width, r - first);
    }
    const std::uint32_t offset = number * at_.logits_pitch;
    Instruction& head = product(Opcode::kMm, at_.logits + offset, row(at_.normalised, first),
                                maker_.layout_.hbm.lm_head);
    head.rows = rows() - first;
    if (head.rows > 1) head.pitch = at_.pitch;
    head.other = kScale;
    head.scales = maker_.layout_.ddr.lm_head_scales +
                  std::uint64_t{part_.vocabulary.begin} * sizes_.columns * kHalfBytes;
    head.finds_largest = true;
    head.winner = at_.winners + offset + maker_.core_ * sizes_.depth;
    head.first_column = part_.vocabulary.begin * sizes_.columns;
    // Columns after the vocabulary are no words.
    const std::uint32_t last = maker_.shape_.vocabulary;
    head.elements = std::min(head.elements, last - std::min(last, head.first_column));
  }

  /// Of the row with logits that has this number.
  void gather_winners(std::uint32_t number) {
    if (cores_ == 1) return;
    phase_ = Phase::kSync;
    put(Opcode::kSync).exchange = static_cast<std::uint32_t>(pass_.exchanges.size());
    pass_.exchanges.push_back(
        {at_.winners + number * at_.logits_pitch, bounds(cores_, cores_, sizes_.depth), false});
  }

  const PassMaker& maker_;
  const Sizes& sizes_;
  const Registers& at_;
  const Part& part_;
  const std::uint32_t cores_;
  const std::vector<PassRow> all_;
  std::vector<PassRow> rows_;  ///< of them: those that instructions are written for
  const bool reduces_;
};

Pass PassMaker::make(const std::vector<PassRow>& rows, std::size_t first_logits) const {
  return PassWriter(*this, rows).write(std::min(first_logits, rows.size()));
}

Pass PassMaker::make(const std::vector<std::uint32_t>& ids, std::uint32_t position,
                     bool logits) const {
  std::vector<PassRow> rows;
  for (const std::uint32_t id : ids) {
    rows.push_back({id, position + static_cast<std::uint32_t>(rows.size()), 0});
  }
  return make(rows, rows.size() - (logits ? 1 : 0));
}

}  // namespace systole::mapper::dfx

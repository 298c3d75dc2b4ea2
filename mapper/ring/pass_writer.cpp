#include <algorithm>
#include <utility>

#include "mapper/ring/exchanges.h"
#include "mapper/ring/pass.h"
#include "mapper/ring/row_writer.h"

namespace systole::mapper::dfx {

using hw::kHalfBytes;
using hw::dfx::Collective;
using hw::dfx::TableFunction;

/// Writes one pass.
class PassWriter : private RowWriter {
 public:
  PassWriter(const PassMaker& maker, std::vector<PassRow> rows)
      : RowWriter(maker),
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
          if (maker_.shape_.llama) load_epsilon(0);
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

  void sync(std::uint32_t exchange) {
    if (cores_ == 1 || maker_.is_pipelined()) return;
    phase_ = Phase::kSync;
    for (std::uint32_t r = 0; r < rows(); ++r) {
      put(Opcode::kSync).exchange = r * kExchanges + exchange;
    }
  }
  void embed(std::uint32_t r) {
    phase_ = Phase::kEmbedding;
    const DdrLayout& ddr = maker_.layout_.ddr;
    const std::uint64_t row_bytes = std::uint64_t{sizes_.width} * kHalfBytes;
    with_memory(Opcode::kLoad, row(at_.stream, r), 0, ddr.words + rows_[r].id * row_bytes,
                sizes_.width);
    if (maker_.shape_.llama) return load_epsilon(r);
    with_memory(Opcode::kAdd, row(at_.stream, r), row(at_.stream, r),
                ddr.positions + rows_[r].position * row_bytes, sizes_.width);
  }
  void load_epsilon(std::uint32_t r) {
    with_memory(Opcode::kLoad, row(at_.stream + sizes_.width, r), 0, maker_.layout_.ddr.epsilon,
                sizes_.depth);
  }

  void layer(std::uint32_t index) {
    const DdrLayer& ddr = maker_.layout_.ddr.layers[index];
    const HbmLayer& hbm = maker_.layout_.hbm.layers[index];
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
        .has_bias &= biased;
    sync(kProjected);
    residual();
    for (std::uint32_t r = 0; r < rows(); ++r) norm(ddr.norm2, r);
    phase_ = Phase::kFeedForward;
    quantise_rows(at_.normalised, sizes_.width);
    hidden_layer(ddr, hbm);
    if (!reduces_) sync(kHidden);
    phase_ = Phase::kFeedForward;
    quantise_rows(at_.hidden, hbm.output.k_tiles * sizes_.depth);
    conv(at_.projected + first, at_.hidden, hbm.output, ddr.output_bias, ddr.output_scales, first)
        .has_bias &= biased;
    sync(kOutput);
    residual();
  }

  void hidden_layer(const DdrLayer& ddr, const HbmLayer& hbm) {
    const std::uint32_t column = part_.hidden.begin * sizes_.columns;
    const std::uint32_t hidden = at_.hidden + (reduces_ ? 0 : column);
    if (!maker_.shape_.llama) {
      conv(hidden, at_.normalised, hbm.hidden, ddr.hidden_bias, ddr.hidden_scales, column)
          .function = TableFunction::kGelu;
      return;
    }
    conv(at_.gate, at_.normalised, hbm.gate, 0, ddr.gate_scales, column).function =
        TableFunction::kSilu;
    conv(hidden, at_.normalised, hbm.hidden, 0, ddr.hidden_scales, column);
    const std::uint32_t elements = part_.hidden.size() * sizes_.columns;
    for (std::uint32_t r = 0; elements != 0 && r < rows(); ++r) {
      with_vector(Opcode::kMul, row(hidden, r), row(at_.gate, r), row(hidden, r), elements);
    }
  }

  void residual() {
    phase_ = Phase::kResidual;
    for (std::uint32_t r = 0; r < rows(); ++r) {
      with_vector(Opcode::kAdd, row(at_.stream, r), row(at_.stream, r), row(at_.projected, r),
                  sizes_.width);
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

  const std::vector<PassRow> all_;  ///< rows_: of them
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

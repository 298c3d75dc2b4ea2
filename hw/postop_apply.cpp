#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "hw/gelu.h"
#include "hw/layernorm.h"
#include "hw/postop.h"
#include "hw/row_kernels.h"
#include "hw/softmax.h"
#include "hw/stage_constants.h"

namespace systole::hw {
namespace {

constexpr std::int32_t kLowestInt32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kHighestInt32 = std::numeric_limits<std::int32_t>::max();

/// Elements of a block: with its copy of the tensor operand it stays in the first-level cache.
constexpr std::size_t kBlockElements = 2048;
/// From this many elements on a table of all s8 inputs is cheaper than GELU by its polynomial.
constexpr std::size_t kTableThreshold = 1024;
constexpr std::int32_t kTableLowest = -128;
constexpr std::size_t kTableEntries = 256;

/// Consecutive rows of the tile, without gaps between them.
struct Block {
  std::int32_t* x;
  std::size_t first_row;
  std::size_t rows;
  std::size_t cols;

  [[nodiscard]] std::size_t size() const { return rows * cols; }
  [[nodiscard]] std::int32_t* row(std::size_t i) const { return x + i * cols; }
};

/// A chain bound to its operands. Blocks of rows pass through all stages while they are cached.
class ChainRunner {
 public:
  ChainRunner(const Chain& chain, const ChainOperands& operands)
      : chain_(chain), operands_(operands) {
    if (operands.cols > kLayerNormMaxLength && is_row_wise(chain)) {
      throw std::invalid_argument("post-op chain: row longer than 65536 elements");
    }
    sanitise_channel_factors();
  }

  void run() {
    const std::size_t cols = operands_.cols;
    const std::size_t block_rows =
        std::clamp<std::size_t>(kBlockElements / cols, 1, operands_.rows);
    // The elements are written before they are read, so nothing clears them.
    const std::size_t size = block_rows * cols;
    const std::unique_ptr<std::int32_t[]> values(new std::int32_t[size]);
    const std::unique_ptr<std::int32_t[]> tensor(uses_tensor(chain_) ? new std::int32_t[size]
                                                                     : nullptr);
    tensor_ = tensor.get();
    for (std::size_t first = 0; first < operands_.rows; first += block_rows) {
      const Block block{values.get(), first, std::min(block_rows, operands_.rows - first), cols};
      load(block);
      apply_stages(block);
      store(block);
    }
  }

 private:
  /// Copies the per-channel multipliers and shifts, brought into the range of their registers.
  void sanitise_channel_factors() {
    std::size_t word = 0;
    for (const Stage& stage : chain_.stages) {
      if (stage.op == StageOp::kRequantise && stage.per_channel) {
        const std::int32_t* multipliers = parameter(word);
        const std::int32_t* shifts = parameter(word + 1);
        const std::size_t cols = operands_.cols;
        channel_factors_.resize(channel_factors_.size() + 2 * cols);
        std::int32_t* to = channel_factors_.data() + channel_factors_.size() - 2 * cols;
        for (std::size_t i = 0; i < cols; ++i) {
          const Dyadic factor = channel_factor(multipliers[i], shifts[i]);
          to[i] = factor.multiplier;
          to[cols + i] = factor.shift;
        }
      }
      word += parameter_words(stage);
    }
  }

  [[nodiscard]] const std::int32_t* parameter(std::size_t word) const {
    return operands_.parameters + word * operands_.cols;
  }

  void load(const Block& block) const {
    for (std::size_t i = 0; i < block.rows; ++i) {
      const std::size_t row = block.first_row + i;
      std::memcpy(block.row(i), operands_.accumulator + row * operands_.accumulator_pitch,
                  block.cols * sizeof(std::int32_t));
    }
  }

  void store(const Block& block) const {
    auto* out = static_cast<unsigned char*>(operands_.out);
    for (std::size_t i = 0; i < block.rows; ++i) {
      row::narrow(block.row(i), out + (block.first_row + i) * operands_.out_pitch, chain_.out,
                  block.cols);
    }
  }

  void apply_stages(const Block& block) {
    const Stage* previous = nullptr;
    std::size_t word = 0;
    std::size_t factors = 0;
    for (const Stage& stage : chain_.stages) {
      switch (stage.op) {
        case StageOp::kBias:
          row::add(block.x, parameter(word), block.cols, block.rows);
          break;
        case StageOp::kRequantise:
          if (stage.per_channel) {
            const std::int32_t* multipliers = channel_factors_.data() + factors;
            row::requantise_channels(block.x, block.cols, block.rows, multipliers,
                                     multipliers + block.cols, stage.rounding, limits_at(stage, 2));
            factors += 2 * block.cols;
          } else {
            row::requantise(block.x, block.size(), dyadic_at(stage, 0), stage.rounding,
                            limits_at(stage, 2));
          }
          break;
        case StageOp::kAddTensor:
          add_tensor(stage, block);
          break;
        case StageOp::kClamp:
          row::clamp(block.x, block.size(), limits_at(stage, 0));
          break;
        case StageOp::kRelu:
          row::clamp(block.x, block.size(), {0, kHighestInt32});
          break;
        case StageOp::kGelu:
          gelu(stage, previous, block);
          break;
        case StageOp::kSoftmax:
          softmax(stage, block);
          break;
        case StageOp::kDivideRowSum:
          divide_row_sum(block);
          break;
        case StageOp::kLayerNorm:
          layer_norm(stage, block, word);
          break;
      }
      word += parameter_words(stage);
      previous = &stage;
    }
  }

  void add_tensor(const Stage& stage, const Block& block) {
    const auto* source = static_cast<const unsigned char*>(operands_.tensor);
    for (std::size_t i = 0; i < block.rows; ++i) {
      row::widen(source + (block.first_row + i) * operands_.tensor_pitch, stage.tensor,
                 tensor_ + i * block.cols, block.cols);
    }
    if (stage.imm[0] != 0) {
      row::requantise(tensor_, block.size(), dyadic_at(stage, 0), stage.rounding,
                      limits_at(stage, 2));
    }
    row::add(block.x, tensor_, block.size(), 1);
  }

  /// Whether the stage before leaves nothing but s8 values.
  static bool gives_s8(const Stage* stage) {
    if (stage == nullptr) return false;
    const auto within = [stage](std::size_t i) {
      return stage->imm[i] >= kTableLowest && stage->imm[i + 1] < -kTableLowest;
    };
    if (stage->op == StageOp::kClamp) return within(0);
    return stage->op == StageOp::kRequantise && within(2);
  }

  void gelu(const Stage& stage, const Stage* previous, const Block& block) {
    if (operands_.rows * operands_.cols < kTableThreshold || !gives_s8(previous)) {
      row::gelu(block.x, block.size(), gelu_constants(stage), limits_at(stage, 5));
      return;
    }
    if (gelu_table_of_ != &stage) {
      for (std::size_t i = 0; i < kTableEntries; ++i) {
        gelu_table_[i] = static_cast<std::int32_t>(i) + kTableLowest;
      }
      row::gelu(gelu_table_.data(), kTableEntries, gelu_constants(stage), limits_at(stage, 5));
      gelu_table_of_ = &stage;
    }
    const std::int32_t* centre = gelu_table_.data() - kTableLowest;
    for (std::size_t i = 0; i < block.size(); ++i) block.x[i] = centre[block.x[i]];
  }

  void softmax(const Stage& stage, const Block& block) const {
    const SoftmaxConstants constants = softmax_constants(stage);
    for (std::size_t i = 0; i < block.rows; ++i) {
      std::int32_t* x = block.row(i);
      const std::size_t kept = operands_.kept_in(block.first_row + i);
      row::exponentials(x, kept, row::maximum(x, kept), constants);
      const std::uint32_t sum = row::softmax_codes(x, kept, constants);
      std::fill(x + kept, x + block.cols, 0);
      if (constants.mode == SoftmaxMode::kDeferred) {
        operands_.row_statistics[block.first_row + i] = sum;
      }
    }
  }

  void divide_row_sum(const Block& block) const {
    for (std::size_t i = 0; i < block.rows; ++i) {
      const std::uint32_t sum = operands_.row_statistics[block.first_row + i];
      const Dyadic reciprocal{
          static_cast<std::int32_t>((1U << kDeferredReciprocalBits) / std::max(sum, 1U)),
          kDeferredReciprocalBits - kDeferredFractionBits};
      row::requantise(block.row(i), block.cols, reciprocal, Rounding::kHalfUp,
                      {kLowestInt32, kHighestInt32});
    }
  }

  void layer_norm(const Stage& stage, const Block& block, std::size_t word) const {
    const row::LayerNormFactors factors =
        layer_norm_factors(stage, parameter(word), operands_.cols);
    row::clamp(block.x, block.size(), row::kLayerNormInputs);
    for (std::size_t i = 0; i < block.rows; ++i) {
      std::int32_t* x = block.row(i);
      row::layer_norm_output(x, block.cols, row::layer_norm_statistics(x, block.cols), factors,
                             limits_at(stage, 2));
    }
  }

  const Chain& chain_;
  const ChainOperands& operands_;
  std::vector<std::int32_t> channel_factors_;  ///< per stage: multipliers, then shifts
  std::int32_t* tensor_ = nullptr;             ///< scratch of a block, widened tensor operand
  std::array<std::int32_t, kTableEntries> gelu_table_;
  const Stage* gelu_table_of_ = nullptr;
};

}  // namespace

void apply_chain(const Chain& chain, const ChainOperands& operands) {
  if (operands.rows == 0 || operands.cols == 0) return;
  ChainRunner(chain, operands).run();
}

}  // namespace systole::hw

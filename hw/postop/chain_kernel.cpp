#include "hw/postop/chain_kernel.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "hw/function/layernorm.h"
#include "hw/kernel/row_kernels.h"
#include "hw/postop/chain_frame.h"

namespace systole::hw {
namespace {

/// Elements of a block: with an operand of the same size it stays in the first-level cache.
constexpr std::size_t kBlockElements = 2048;

// The elements are written before they are read, so nothing clears them.
std::unique_ptr<std::int32_t[]> room(std::size_t elements) {
  return std::unique_ptr<std::int32_t[]>(new std::int32_t[elements]);
}

bool saves(const Chain& chain) {
  return std::any_of(chain.stages.begin(), chain.stages.end(),
                     [](const Stage& stage) { return stage.operand == Operand::kSaved; });
}

}  // namespace

ChainKernel::Frame::Frame(const Chain& chain, const ChainOperands& operands)
    : chain_(chain),
      operands_(operands),
      block_rows_(std::clamp<std::size_t>(kBlockElements / operands.cols, 1, operands.rows)),
      statistics_words_(hw::statistics_words(chain)),
      values_(room(block_rows_ * operands.cols)),
      saved_(saves(chain) ? room(block_rows_ * operands.cols) : nullptr),
      scratch_(room(block_rows_ * operands.cols)) {}

void ChainKernel::Frame::load(std::size_t first) {
  first_row_ = first;
  rows_ = std::min(block_rows_, operands_.rows - first);
  for (std::size_t i = 0; i < rows_; ++i) {
    std::memcpy(row(i), operands_.accumulator + (first + i) * operands_.accumulator_pitch,
                operands_.cols * sizeof(std::int32_t));
  }
  if (saved_ != nullptr) std::copy(x(), x() + size(), saved_.get());
}

void ChainKernel::Frame::store() const {
  if (transposes(chain_)) return store_transposed();
  auto* out = static_cast<unsigned char*>(operands_.out);
  for (std::size_t i = 0; i < rows_; ++i) {
    row::narrow(row(i), out + (first_row_ + i) * operands_.out_pitch, chain_.out, operands_.cols);
  }
}

void ChainKernel::Frame::store_transposed() const {
  const std::size_t bytes = bytes_of(chain_.out);
  std::vector<unsigned char> narrowed(operands_.cols * bytes);
  auto* const out = static_cast<unsigned char*>(operands_.out) + first_row_ * bytes;
  for (std::size_t i = 0; i < rows_; ++i) {
    row::narrow(row(i), narrowed.data(), chain_.out, operands_.cols);
    for (std::size_t c = 0; c < operands_.cols; ++c) {
      std::memcpy(out + c * operands_.out_pitch + i * bytes, &narrowed[c * bytes], bytes);
    }
  }
}

ChainKernel::ChainKernel(Chain chain) : chain_(std::move(chain)) {
  std::size_t word = 0;
  for (std::size_t i = 0; i < chain_.stages.size(); ++i) {
    if (Step step = compose_stage(chain_, i, word)) steps_.push_back(std::move(step));
    word += parameter_words(chain_.stages[i]);
  }
}

void ChainKernel::apply(const ChainOperands& operands) const {
  if (operands.rows == 0 || operands.cols == 0) return;
  if (operands.cols > kLayerNormMaxLength && is_row_wise(chain_)) {
    throw std::invalid_argument("post-op chain: row longer than 65536 elements");
  }
  Frame frame(chain_, operands);
  for (std::size_t first = 0; first < operands.rows; first += frame.block_rows()) {
    frame.load(first);
    for (const Step& step : steps_) step(frame);
    frame.store();
  }
}

void apply_chain(const Chain& chain, const ChainOperands& operands) {
  ChainKernel(chain).apply(operands);
}

}  // namespace systole::hw

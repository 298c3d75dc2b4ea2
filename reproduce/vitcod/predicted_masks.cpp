#include <algorithm>
#include <cmath>

#include "model/data/dataset.h"
#include "model/float/float_vit.h"
#include "model/model_files.h"
#include "reproduce/vitcod/rivals.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

constexpr const char* kPredictedModel = "vit65";
/// Steps that find a threshold to 2^-20.
constexpr int kThresholdSteps = 20;

/// Q and K of every head of every layer, of one picture.
class HeadOperands final : public model::ActivationObserver {
 public:
  explicit HeadOperands(const model::EncoderShape& shape) : shape_(shape) {}

  void observe(model::Site site, std::size_t /*layer*/, const double* values, std::size_t rows,
               std::size_t cols) override {
    if (site != model::Site::kQkv) return;
    for (std::size_t head = 0; head < shape_.heads; ++head) {
      query.push_back(columns(values, rows, cols, head * shape_.head_width()));
      key.push_back(columns(values, rows, cols, shape_.width + head * shape_.head_width()));
    }
  }

  std::vector<std::vector<double>> query, key;  ///< [layers * heads][tokens * head width]

 private:
  [[nodiscard]] std::vector<double> columns(const double* values, std::size_t rows,
                                            std::size_t cols, std::size_t first) const {
    std::vector<double> part;
    for (std::size_t row = 0; row < rows; ++row) {
      const double* const begin = values + row * cols + first;
      part.insert(part.end(), begin, begin + shape_.head_width());
    }
    return part;
  }

  const model::EncoderShape shape_;
};

model::AttentionMask mask_of(const HeadOperands& operands, const model::AttentionShape& shape,
                             std::size_t dim, double threshold) {
  model::AttentionMask mask(shape);
  for (std::size_t head = 0; head < operands.query.size(); ++head) {
    const std::vector<std::uint8_t> kept =
        hw::dynamic::predict_mask(operands.query[head], operands.key[head], dim, threshold);
    for (std::size_t cell = 0; cell < kept.size(); ++cell) {
      if (kept[cell] != 0) mask.keep(head * shape.head_cells() + cell);
    }
  }
  return mask;
}

}  // namespace

PredictedMasks predicted_masks(double sparsity, std::size_t pictures) {
  const model::FloatVit vit(model::load_vit_checkpoint(model::find_checkpoint(kPredictedModel)));
  const model::EncoderShape& encoder = vit.shape().encoder;
  const std::size_t tokens = vit.shape().tokens();
  const model::AttentionShape shape{encoder.layers, encoder.heads, tokens, tokens};
  const model::Dataset data = model::load_images(default_data(), vit.shape().pictures());
  std::vector<HeadOperands> operands;
  for (std::size_t i = 0; i < std::min(pictures, data.count); ++i) {
    operands.emplace_back(encoder);
    static_cast<void>(vit.logits(model::patches_of(data, i, vit.shape()), &operands.back()));
  }
  PredictedMasks found;
  const auto predict = [&](double threshold) {
    found.threshold = threshold;
    found.masks.clear();
    double pruned = 0.0;
    for (const HeadOperands& one : operands) {
      found.masks.push_back(mask_of(one, shape, encoder.head_width(), threshold));
      pruned += found.masks.back().sparsity();
    }
    return pruned / static_cast<double>(operands.size());
  };
  double low = 0.0, high = 1.0;
  for (int step = 0; step < kThresholdSteps; ++step) {
    const double middle = (low + high) / 2;
    (predict(middle) < sparsity ? low : high) = middle;
  }
  static_cast<void>(predict(high));
  return found;
}

}  // namespace systole::testbench

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "model/checkpoint/llama_checkpoint.h"
#include "model/float/float_llama.h"
#include "model/integer/integer_llama.h"
#include "model/quantise/llama_losses.h"
#include "model/quantise/quantiser_options.h"

namespace systole::model {

/// The largest magnitude of every channel at every site of a Llama.
class LlamaCalibration {
 public:
  /// Throws InputError if a value is not finite.
  void observe(LlamaSite site, std::size_t layer, const float* values, std::size_t rows,
               std::size_t cols);
  [[nodiscard]] const std::vector<double>& channels(LlamaSite site, std::size_t layer) const {
    return maxima_.at({site, layer});
  }
  [[nodiscard]] double largest(LlamaSite site, std::size_t layer) const;
  /// Of the residual stream, at all places.
  [[nodiscard]] double largest_stream() const;
  /// As if every channel had been divided by its factor.
  void divide(LlamaSite site, std::size_t layer, const std::vector<double>& factors);

 private:
  std::map<std::pair<LlamaSite, std::size_t>, std::vector<double>> maxima_;
};

/// Of QuantiserOptions::outlier_alpha, where it is not given and weights have eight bits. Those of
/// four bits are not folded by default: a factor per input makes the weights of a group unlike, and
/// takes those of a file with groups of its own, as Q4_1, off their steps.
inline constexpr double kLlamaOutlierAlpha = 0.5;

/// Integer constants for every layer, by post-training quantisation on `texts`, as quantise() of
/// model/quantise/quantiser.h makes them, except that
/// - inputs of the products have a scale of each row, which needs no calibration; queries, keys and
///   values have one scale throughout;
/// - outliers of keys are shared with the queries, pair by pair, before anything is rounded;
/// - outliers of the norms, of values, and of the MLP's product, are folded into the weights that
///   read them (fold_outliers()), too; of weights of four bits only if asked for.
/// `checkpoint` is used up. `losses`: set to what rounding costs each layer on the first text;
/// null: not wanted. Throws InputError as quantise() does, for a datapath that has fewer than 8
/// bits where Llamas need them, and for options of vision models.
[[nodiscard]] IntegerLlama quantise(LlamaCheckpoint checkpoint,
                                    const std::vector<std::vector<std::int32_t>>& texts,
                                    const QuantiserOptions& options = {},
                                    const std::function<void(std::size_t)>& progress = {},
                                    std::vector<LayerLoss>* losses = nullptr);

}  // namespace systole::model

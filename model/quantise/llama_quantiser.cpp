#include "model/quantise/llama_quantiser.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "hw/function/rms_norm.h"
#include "hw/number/integer.h"
#include "hw/number/softmax_mode.h"
#include "model/quantise/block_quantiser.h"
#include "model/quantise/quantise_layers.h"

namespace systole::model {
namespace {

/// Logits get 2^20 codes for their calibrated maximum, or twice as many.
constexpr int kLlamaLogitBits = 20;

/// As kWideRoom, of what the MLP's two branches multiply to.
constexpr double kProductRoom = 16.0;

/// What calibration has seen of a quiet channel says little of other texts: outliers alone move, no
/// channel becomes larger beside the median.
void raise_to_median(std::vector<double>& factors) {
  std::vector<double> sorted = factors;
  std::sort(sorted.begin(), sorted.end());
  for (double& factor : factors) factor = std::max(factor, sorted[sorted.size() / 2]);
}

/// Factors of the channels of an input: max|x|^alpha / max|w|^(1 - alpha), 1 where either is 0, and
/// the median at the least.
std::vector<double> outlier_factors(const std::vector<double>& activations,
                                    const std::vector<const LlamaLinear*>& readers, double alpha) {
  std::vector<double> factors(activations.size(), 1.0);
  for (std::size_t j = 0; j < factors.size(); ++j) {
    double weight = 0;
    for (const LlamaLinear* const reader : readers) {
      for (std::size_t o = 0; o < reader->outputs; ++o) {
        weight = std::max(weight, std::fabs(double{reader->weight[o * reader->inputs + j]}));
      }
    }
    if (activations[j] == 0 || weight == 0) continue;
    factors[j] = std::pow(activations[j], alpha) / std::pow(weight, 1.0 - alpha);
  }
  raise_to_median(factors);
  return factors;
}

void multiply_columns(LlamaLinear& layer, const std::vector<double>& factors) {
  for (std::size_t i = 0; i < layer.weight.size(); ++i) {
    layer.weight[i] = static_cast<float>(layer.weight[i] * factors[i % layer.inputs]);
  }
}

void divide_rows(std::vector<float>& values, std::size_t row, const std::vector<double>& factors) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(values[i] / factors[i / row]);
  }
}

/// `factors` of each of `parts` parts of a list, `copies` times one after the other: those of the
/// heads that share keys and values.
std::vector<double> for_each_head(const std::vector<double>& factors, std::size_t parts,
                                  std::size_t copies) {
  const std::size_t width = factors.size() / parts;
  std::vector<double> result;
  for (std::size_t i = 0; i < factors.size() * copies; ++i) {
    result.push_back(factors[i / (width * copies) * width + i % width]);
  }
  return result;
}

/// The largest of what heads that share keys and values have in a channel: the inverse.
std::vector<double> of_shared_heads(const std::vector<double>& maxima, std::size_t parts,
                                    std::size_t copies) {
  const std::size_t width = maxima.size() / parts / copies;
  std::vector<double> result(width * parts, 0.0);
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    double& largest = result[i / (width * copies) * width + i % width];
    largest = std::max(largest, maxima[i]);
  }
  return result;
}

/// The largest of what all heads have in a feature, [head width].
std::vector<double> of_all_heads(const std::vector<double>& maxima, std::size_t head_width) {
  std::vector<double> result(head_width, 0.0);
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    double& largest = result[i % head_width];
    largest = std::max(largest, maxima[i]);
  }
  return result;
}

void divide_outputs(LlamaLinear& layer, const std::vector<double>& factors) {
  divide_rows(layer.weight, layer.inputs, factors);
  divide_rows(layer.bias, 1, factors);
}

/// By which to divide the pairs of features of keys, and to multiply those of queries, so that both
/// have outliers alike.
std::vector<double> score_factors(const std::vector<double>& queries,
                                  const std::vector<double>& keys) {
  std::vector<double> factors(keys.size(), 1.0);
  for (std::size_t c = 0; c + 1 < keys.size(); c += 2) {
    const double key = std::max(keys[c], keys[c + 1]);
    const double query = std::max(queries[c], queries[c + 1]);
    if (key > 0 && query > 0) factors[c] = factors[c + 1] = std::sqrt(key / query);
  }
  raise_to_median(factors);
  return factors;
}

/// The same where each head has a norm, whose weights all heads share.
void balance_head_norms(LlamaCheckpoint& llama, LlamaCalibration& maxima, std::size_t layer) {
  const std::size_t width = llama.shape.head_width;
  std::vector<double> factors =
      score_factors(of_all_heads(maxima.channels(LlamaSite::kQuery, layer), width),
                    of_all_heads(maxima.channels(LlamaSite::kKey, layer), width));
  FloatLlamaBlock& block = llama.blocks[layer];
  divide_rows(block.key_norm, 1, factors);
  maxima.divide(LlamaSite::kKey, layer, for_each_head(factors, 1, llama.shape.kv_heads));
  for (double& factor : factors) factor = 1.0 / factor;
  divide_rows(block.query_norm, 1, factors);
  maxima.divide(LlamaSite::kQuery, layer, for_each_head(factors, 1, llama.shape.heads));
}

/// Divides the pairs of features that a rotation turns in keys, and multiplies those of the
/// queries, until both have outliers alike. Weights keep their steps: outputs have scales of their
/// own.
void balance_llama_scores(LlamaCheckpoint& llama, LlamaCalibration& maxima) {
  const std::size_t shared = llama.shape.kv_heads, group = llama.shape.group();
  for (std::size_t i = 0; i < llama.blocks.size(); ++i) {
    if (llama.shape.head_norms) {
      balance_head_norms(llama, maxima, i);
      continue;
    }
    std::vector<double> factors =
        score_factors(of_shared_heads(maxima.channels(LlamaSite::kQuery, i), shared, group),
                      maxima.channels(LlamaSite::kKey, i));
    divide_outputs(llama.blocks[i].key, factors);
    maxima.divide(LlamaSite::kKey, i, factors);
    for (double& factor : factors) factor = 1.0 / factor;
    factors = for_each_head(factors, shared, group);
    divide_outputs(llama.blocks[i].query, factors);
    maxima.divide(LlamaSite::kQuery, i, factors);
  }
}

/// Moves outliers of values, and so of contexts, into the projection that reads them.
void fold_llama_values(FloatLlamaBlock& block, const LlamaShape& shape, LlamaCalibration& maxima,
                       std::size_t layer, double alpha) {
  const std::size_t shared = shape.kv_heads, group = shape.group();
  // Columns of the projection that read one channel of the values, as rows of one matrix.
  LlamaLinear readers{
      shape.kv_width(), static_cast<std::uint32_t>(group) * block.proj.outputs, {}, {}};
  readers.weight.resize(std::size_t{readers.inputs} * readers.outputs);
  const std::size_t width = shape.head_width;
  for (std::size_t o = 0; o < block.proj.outputs; ++o) {
    for (std::size_t c = 0; c < block.proj.inputs; ++c) {
      const std::size_t head = c / width, channel = head / group * width + c % width;
      readers.weight[(o * group + head % group) * readers.inputs + channel] =
          block.proj.weight[o * block.proj.inputs + c];
    }
  }
  const std::vector<double> factors =
      outlier_factors(of_shared_heads(maxima.channels(LlamaSite::kContext, layer), shared, group),
                      {&readers}, alpha);
  divide_outputs(block.value, factors);
  maxima.divide(LlamaSite::kValue, layer, factors);
  const std::vector<double> columns = for_each_head(factors, shared, group);
  multiply_columns(block.proj, columns);
  maxima.divide(LlamaSite::kContext, layer, columns);
}

/// Moves outliers of the inputs of products into their weights; the network stays what it is.
void fold_llama_outliers(LlamaCheckpoint& llama, LlamaCalibration& maxima, double alpha) {
  for (std::size_t i = 0; i < llama.blocks.size(); ++i) {
    FloatLlamaBlock& block = llama.blocks[i];
    const auto fold = [&](LlamaSite site, std::vector<float>& norm,
                          const std::vector<LlamaLinear*>& readers) {
      const std::vector<double> factors =
          outlier_factors(maxima.channels(site, i), {readers.begin(), readers.end()}, alpha);
      divide_rows(norm, 1, factors);
      for (LlamaLinear* const reader : readers) multiply_columns(*reader, factors);
      maxima.divide(site, i, factors);
    };
    fold(LlamaSite::kNorm1, block.norm1, {&block.query, &block.key, &block.value});
    fold_llama_values(block, llama.shape, maxima, i, alpha);
    std::vector<LlamaLinear*> readers = {&block.gate, &block.up};
    if (llama.shape.experts != 0) {
      readers = {&block.router};
      for (FloatExpert& expert : block.experts) {
        readers.insert(readers.end(), {&expert.gate, &expert.up});
      }
    }
    fold(LlamaSite::kNorm2, block.norm2, readers);
    // What calibration has seen of an expert is little.
    if (llama.shape.experts != 0) continue;
    const std::vector<double> factors =
        outlier_factors(maxima.channels(LlamaSite::kProduct, i), {&block.down}, alpha);
    divide_outputs(block.up, factors);
    multiply_columns(block.down, factors);
    maxima.divide(LlamaSite::kUp, i, factors);
    maxima.divide(LlamaSite::kProduct, i, factors);
  }
}

class LlamaQuantiser {
 public:
  LlamaQuantiser(const LlamaCheckpoint& llama, const LlamaCalibration& maxima,
                 const QuantiserOptions& options)
      : llama_(llama),
        maxima_(maxima),
        options_(options),
        layers_(llama.path, options.datapath.multiplier_bits, options.per_channel),
        stream_(code_scale(maxima.largest_stream(), options.datapath.residual_bits,
                           options.headroom)) {}

  [[nodiscard]] IntegerLlama run() const {
    IntegerLlama llama;
    llama.shape = llama_.shape;
    llama.datapath = options_.datapath;
    llama.row_scales = llama.context_scales = true;
    llama.exp_to_code = layers_.exp_to_code(options_.datapath.softmax_bits);
    llama.embedding_scale = stream_;
    for (std::size_t i = 0; i < llama_.blocks.size(); ++i) llama.blocks.push_back(block(i));
    llama.norm = norm("norm", LlamaSite::kFinalNorm, 0, llama_.norm);
    const double largest = maxima_.largest(LlamaSite::kLogits, 0);
    llama.logit_scale =
        std::exp2(std::ceil(std::log2(largest > 0 ? largest : 1.0)) - double{kLlamaLogitBits});
    const LlamaLinear output{
        llama_.shape.width, llama_.shape.vocabulary, llama_.output_weight(), {}};
    llama.output =
        linear("logits", output, row_product_scale(llama.norm.scale, output.inputs, kWideBits),
               llama.logit_scale, hw::WeightFormat::kInt8);
    quantise_words(llama);
    return llama;
  }

 private:
  [[nodiscard]] double wide_scale(LlamaSite site, std::size_t layer) const {
    return code_scale(maxima_.largest(site, layer), kWideBits, kWideRoom);
  }
  /// Of an s8 tensor.
  [[nodiscard]] double operand_scale(LlamaSite site, std::size_t layer) const {
    return code_scale(maxima_.largest(site, layer));
  }
  /// Of a block.
  [[nodiscard]] IntegerLinear linear(const std::string& name, const LlamaLinear& layer, double in,
                                     double out) const {
    return linear(name, layer, in, out, options_.weight_format);
  }
  [[nodiscard]] IntegerLinear linear(const std::string& name, const LlamaLinear& layer, double in,
                                     double out, hw::WeightFormat format) const {
    FloatLinear real;
    real.inputs = layer.inputs;
    real.outputs = layer.outputs;
    real.weight.assign(layer.weight.begin(), layer.weight.end());
    real.bias.assign(layer.bias.begin(), layer.bias.end());
    real.bias.resize(layer.outputs, 0.0);
    if (hw::is_mx(format)) require_groups(llama_.path, name, layer.inputs);
    IntegerLinear result =
        layers_.linear(name, real, in, {{layer.outputs, out}}, kWeightBits, format);
    if (layer.bias.empty()) result.bias.clear();
    return result;
  }

  [[nodiscard]] IntegerRmsNorm norm(const std::string& name, LlamaSite site, std::size_t layer,
                                    const std::vector<float>& weight) const {
    return norm(name, wide_scale(site, layer), weight);
  }
  [[nodiscard]] IntegerRmsNorm norm(const std::string& name, double scale,
                                    const std::vector<float>& weight) const {
    try {
      hw::RmsNormConstants constants = hw::make_rms_norm_constants({weight.begin(), weight.end()},
                                                                   scale, kLlamaNormFractionBits);
      return {std::move(constants.multiplier), constants.shift, scale, kLlamaNormFractionBits};
    } catch (const hw::InputError& error) {
      layers_.fail(name, error.what());
    }
  }

  [[nodiscard]] IntegerLlamaBlock block(std::size_t i) const {
    const FloatLlamaBlock& from = llama_.blocks[i];
    const std::string prefix = "blocks." + std::to_string(i) + ".";
    const std::uint32_t width = llama_.shape.width;
    IntegerLlamaBlock block;
    block.norm1 = norm(prefix + "norm1", LlamaSite::kNorm1, i, from.norm1);
    block.norm2 = norm(prefix + "norm2", LlamaSite::kNorm2, i, from.norm2);
    const double in1 = row_product_scale(block.norm1.scale, width, kWideBits);
    const double in2 = row_product_scale(block.norm2.scale, width, kWideBits);

    const double query = operand_scale(LlamaSite::kQuery, i);
    const double key = operand_scale(LlamaSite::kKey, i);
    const double value = operand_scale(LlamaSite::kValue, i);
    const double turn = std::ldexp(1.0, -int{kLlamaRopeShift});
    double query_in = query * turn, key_in = key * turn;  // of the layers' outputs
    if (llama_.shape.head_norms) {
      block.query_norm = norm(prefix + "attn.query_norm", query_in, from.query_norm);
      block.key_norm = norm(prefix + "attn.key_norm", key_in, from.key_norm);
      query_in = wide_scale(LlamaSite::kQueryIn, i);
      key_in = wide_scale(LlamaSite::kKeyIn, i);
    }
    block.query = linear(prefix + "attn.query", from.query, in1, query_in);
    block.key = linear(prefix + "attn.key", from.key, in1, key_in);
    block.value = linear(prefix + "attn.value", from.value, in1, value);
    block.score = layers_.factor(
        prefix + "attn.scores",
        std::ldexp(query * key / std::sqrt(static_cast<double>(llama_.shape.head_width)),
                   hw::kScoreFractionBits));
    const double context = wide_scale(LlamaSite::kContext, i);
    block.context =
        layers_.factor(prefix + "attn.context",
                       std::ldexp(value, -context_fraction_bits(options_.datapath)) / context);
    block.proj = linear(prefix + "attn.proj", from.proj,
                        row_product_scale(context, from.proj.inputs, kWideBits), stream_);

    double gate = wide_scale(LlamaSite::kGate, i);
    if (llama_.shape.gelu) gate = std::max(gate, code_scale(kLeastGeluRange, kWideBits));
    const double silu = wide_scale(LlamaSite::kSilu, i);
    const double up = wide_scale(LlamaSite::kUp, i);
    if (llama_.shape.gelu) {
      block.gelu = layers_.gelu(prefix + "mlp.gelu", gate, silu, kWideBits);
    } else {
      block.silu = hw::make_silu_constants(gate, silu, options_.datapath.multiplier_bits,
                                           kLlamaSiluFractionBits);
    }
    const double product =
        code_scale(maxima_.largest(LlamaSite::kProduct, i), kLlamaProductBits, kProductRoom);
    block.product_shift =
        static_cast<unsigned>(std::max(0.0, std::ceil(std::log2(product / (silu * up)))));
    // A product of before its share has as many bits.
    if (llama_.shape.experts != 0) block.product_shift += kShareFractionBits;
    const double wide = std::ldexp(silu * up, static_cast<int>(block.product_shift));
    const double in3 = row_product_scale(wide, llama_.shape.hidden, kLlamaProductBits);
    if (llama_.shape.experts == 0) {
      block.gate = linear(prefix + "mlp.gate", from.gate, in2, gate);
      block.up = linear(prefix + "mlp.up", from.up, in2, up);
      block.down = linear(prefix + "mlp.down", from.down, in3, stream_);
      return block;
    }
    block.router_scale = wide_scale(LlamaSite::kRouter, i);
    block.router = linear(prefix + "mlp.router", from.router, in2, block.router_scale,
                          hw::WeightFormat::kInt8);
    for (std::size_t e = 0; e < from.experts.size(); ++e) {
      const std::string name = prefix + "mlp.expert" + std::to_string(e) + ".";
      const FloatExpert& expert = from.experts[e];
      block.experts.push_back({linear(name + "gate", expert.gate, in2, gate),
                               linear(name + "up", expert.up, in2, up),
                               linear(name + "down", expert.down, in3, stream_)});
    }
    return block;
  }

  /// The table of words on the residual stream: codes of the output matrix if it is tied.
  void quantise_words(IntegerLlama& llama) const {
    const LlamaLinear words{llama_.shape.width, llama_.shape.vocabulary, llama_.word, {}};
    IntegerLinear rows =
        linear("word", words, llama_.word_factor, stream_, hw::WeightFormat::kInt8);
    llama.word_factor = std::move(rows.factor);
    if (!llama_.shape.tied) llama.word = std::move(rows.weight);
  }

  const LlamaCheckpoint& llama_;
  const LlamaCalibration& maxima_;
  const QuantiserOptions& options_;
  LayerQuantiser layers_;
  double stream_;
};

}  // namespace

void LlamaCalibration::observe(LlamaSite site, std::size_t layer, const float* values,
                               std::size_t rows, std::size_t cols) {
  take_column_maxima(values, rows, cols, layer, maxima_[{site, layer}]);
}

double LlamaCalibration::largest(LlamaSite site, std::size_t layer) const {
  const std::vector<double>& maxima = channels(site, layer);
  return *std::max_element(maxima.begin(), maxima.end());
}

double LlamaCalibration::largest_stream() const {
  double largest = 0;
  for (const auto& [place, maxima] : maxima_) {
    if (place.first != LlamaSite::kStream) continue;
    largest = std::max(largest, *std::max_element(maxima.begin(), maxima.end()));
  }
  return largest;
}

void LlamaCalibration::divide(LlamaSite site, std::size_t layer,
                              const std::vector<double>& factors) {
  std::vector<double>& maxima = maxima_.at({site, layer});
  for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] /= factors[i];
}

namespace {

std::string weights_text(hw::WeightFormat format) {
  if (format == hw::WeightFormat::kInt8) return "";
  if (format == hw::WeightFormat::kGroups) return ", weights of four bits";
  return ", weights of " + std::string(name_of(format));
}

}  // namespace

IntegerLlama quantise(LlamaCheckpoint checkpoint,
                      const std::vector<std::vector<std::int32_t>>& texts,
                      const QuantiserOptions& options,
                      const std::function<void(std::size_t)>& progress,
                      std::vector<LayerLoss>* losses) {
  check_options(options);
  if (options.fold_encoders) {
    throw hw::InputError(checkpoint.path + ": folding of encoders: of vision models alone");
  }
  if (texts.empty()) throw hw::InputError("quantiser: no calibration texts");
  LlamaCalibration maxima;
  std::size_t layers = 0;
  for (const std::vector<std::int32_t>& text : texts) {
    static_cast<void>(llama_logits(
        checkpoint, text,
        [&](LlamaSite site, std::size_t layer, const float* values, std::size_t rows,
            std::size_t cols) { maxima.observe(site, layer, values, rows, cols); },
        [&](std::size_t) {
          if (progress) progress(++layers);
        }));
  }
  balance_llama_scores(checkpoint, maxima);
  const hw::WeightFormat format = options.weight_format;
  if (options.outlier_alpha || hw::code_bits(format) == 8) {
    fold_llama_outliers(checkpoint, maxima, options.outlier_alpha.value_or(kLlamaOutlierAlpha));
  }
  if (losses != nullptr) *losses = llama_losses(checkpoint, texts.front(), format);
  IntegerLlama llama = LlamaQuantiser(checkpoint, maxima, options).run();
  // Of int8 weights; formats of MX have their scales from the real ones.
  if (format == hw::WeightFormat::kGroups) group_weights(llama, format, checkpoint.path);
  llama.name = checkpoint.name;
  llama.source = "quantised from " + checkpoint.name + ", " + std::to_string(texts.size()) +
                 " calibration texts" + weights_text(format);
  check_integer_llama(llama, checkpoint.path);
  return llama;
}

}  // namespace systole::model

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/number/dyadic.h"
#include "hw/postop/stage.h"
#include "model/graph/graph_builder.h"
#include "model/integer/integer_vit.h"

/// The parts of linear layers and of attention that every graph of a Transformer has.
namespace systole::model {

/// From [outputs, inputs] as layers store it to [inputs x outputs] as the array reads it, in blocks
/// that stay in the first-level cache, when they are wanted. Empty without weights.
[[nodiscard]] hw::SharedVector<std::uint8_t> transposed_weight(const IntegerLinear& layer);

/// The requantisation of a layer to `bits`, and its parameters: none where all channels have one
/// factor.
[[nodiscard]] hw::Stage factor_stage(const IntegerLinear& layer, unsigned bits,
                                     hw::Rounding rounding);
[[nodiscard]] std::vector<std::int32_t> factor_parameters(const IntegerLinear& layer);

/// `count` outputs of a layer, from `first` on.
[[nodiscard]] IntegerLinear outputs_of(const IntegerLinear& layer, std::uint32_t first,
                                       std::uint32_t count);

/// Matmul by the constant NAME.weight and, if the layer has one, NAME.bias.
View linear_product(GraphBuilder& builder, const std::string& name, View in,
                    const IntegerLinear& layer);

/// What a product takes. With peaks its rows have their own scales (model/integer/row_scales.h).
struct ProductInput {
  View codes;
  TensorId peaks = kNoTensor;
  unsigned bits = 0;  ///< of the values that the peaks are of
};

/// The statistics NAME.peaks: the largest magnitude of each of `rows` rows.
[[nodiscard]] TensorId add_peaks(GraphBuilder& builder, const std::string& name,
                                 std::uint32_t rows);
/// NAME.codes: codes of the rows of `in`, values of `bits` bits whose largest magnitudes are
/// `peaks`.
[[nodiscard]] ProductInput row_codes(GraphBuilder& builder, const std::string& name, View in,
                                     TensorId peaks, unsigned bits);
/// NAME.peak, which leaves the peaks of `in`, s16, and NAME.codes.
[[nodiscard]] ProductInput peaked_codes(GraphBuilder& builder, const std::string& name, View in);
/// NAME.scale: a product of codes with scales of each row, times those scales. As it is where there
/// are none.
View scaled_rows(GraphBuilder& builder, const std::string& name, View product,
                 const ProductInput& in, hw::Rounding rounding);
/// linear_product() of any input: the bias is added after the scales of rows.
View linear_sums(GraphBuilder& builder, const std::string& name, const ProductInput& in,
                 const IntegerLinear& layer, hw::Rounding rounding);

[[nodiscard]] View columns_of(View view, std::uint32_t first, std::uint32_t count);
/// Part `index` of the rows in `count` equal parts.
[[nodiscard]] View rows_of_part(View view, std::uint32_t index, std::uint32_t count);

/// What one head of an attention works on.
struct AttentionHead {
  View query, key, value;
  View context;      ///< where its result goes, s8 or s16
  hw::Dyadic score;  ///< IntegerBlock::score
  hw::Dyadic context_factor;
  hw::Dyadic exp_to_code;  ///< IntegerEncoder::exp_to_code
  bool causal = false;     ///< row r attends to the first r + 1 keys
  View pruned;             ///< s8 table of 0 and kPrunedCode, added to the scores; or none
  hw::Dyadic prune;        ///< prune_factor()
};

/// The nodes PREFIXscores, PREFIXmask (with a table), PREFIXsoftmax, PREFIXcontext,
/// PREFIXdivide (of a deferred softmax) and PREFIXrequantise.
void add_attention_head(GraphBuilder& builder, const std::string& prefix,
                        const hw::Machine::Datapath& datapath, const AttentionHead& head);

}  // namespace systole::model

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
/// that stay in the first-level cache. Empty without weights.
[[nodiscard]] std::vector<std::uint8_t> transposed_weight(const IntegerLinear& layer);

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

[[nodiscard]] View columns_of(View view, std::uint32_t first, std::uint32_t count);
/// Part `index` of the rows in `count` equal parts.
[[nodiscard]] View rows_of_part(View view, std::uint32_t index, std::uint32_t count);

/// What one head of an attention works on.
struct AttentionHead {
  View query, key, value;
  View context;      ///< where its result goes, s8
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

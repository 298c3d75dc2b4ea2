#include "model/network/network_ops.h"

#include <algorithm>

#include "hw/function/divide.h"
#include "hw/function/layernorm.h"
#include "hw/function/silu.h"
#include "hw/number/int_exp.h"
#include "hw/number/weight_groups.h"
#include "hw/program/window.h"
#include "model/network/network_document.h"

namespace systole::model {
namespace {

using In = OpInput::Kind;
using Is = OpAttribute::Kind;
using nlohmann::ordered_json;

constexpr double kMostHeads = 1U << 14;
constexpr double kMostPixels = 1U << 11;
constexpr double kMostLevels = 256;
constexpr double kMostRows = 1U << 20;
constexpr double kMostShift = 62;
constexpr double kMostBits = 32;
constexpr double kMostExperts = 1024;
constexpr double kMostReal = 1e6;
constexpr double kMostBase = 1e9;
constexpr double kMostTurn = 4;  ///< radians from a position to the next

std::vector<NetworkOp> make_ops() {
  const std::vector<OpInput> linear = {{"x"}, {"weight", In::kReal}, {"bias", In::kReal, true}};
  const std::vector<OpInput> integer_linear = {{"x"},
                                               {"weight", In::kCodes},
                                               {"bias", In::kWords},
                                               {"multiplier", In::kWords},
                                               {"shift", In::kCodes}};
  std::vector<OpInput> grouped_linear = integer_linear;
  grouped_linear.push_back({"group_scale", In::kBytes, true});
  grouped_linear.push_back({"group_minimum", In::kCodes, true});
  const OpAttribute format{
      "format", Is::kWord, 0,
      0,        true,      {name_of(hw::WeightFormat::kMxInt8), name_of(hw::WeightFormat::kMxFp4)}};
  const OpForm gelu = {{{"x"}}, {{"form", Is::kWord, 0, 0, false, {"erf", "tanh"}}}};
  const OpForm integer_gelu = {
      {{"x"}},
      {{"b", Is::kInteger}, {"c", Is::kInteger}, {"one", Is::kInteger}, {"factor", Is::kFactor}}};
  const std::vector<OpInput> attention = {{"q"}, {"k"}, {"v"}, {"keep", In::kMask, true}};
  const OpAttribute heads{"heads", Is::kCount, 1, kMostHeads};
  const OpAttribute kv_heads{"kv_heads", Is::kCount, 1, kMostHeads, true};
  const OpAttribute causal{"causal", Is::kFlag};
  const OpAttribute window{"window", Is::kCount, 1, kMostRows, true};
  const OpAttribute own_heads{"heads", Is::kCount, 1, kMostHeads, true};
  const OpAttribute base{"base", Is::kReal, 1, kMostBase};
  const OpAttribute frequencies{"frequencies", Is::kReals, 0, kMostTurn, true};
  const OpAttribute positions{"positions", Is::kCount, 1, kMostRows, true};
  const std::vector<OpAttribute> patches = {{"patch", Is::kCount, 1, kMostPixels},
                                            {"upsample", Is::kCount, 1, kMostPixels},
                                            {"levels", Is::kCount, 2, kMostLevels}};
  const std::vector<OpAttribute> offset = {{"offset", Is::kCount, 0, kMostRows}};
  const std::vector<OpAttribute> row = {{"row", Is::kCount, 0, kMostRows}};
  const OpAttribute stride{"stride", Is::kCount, 1, hw::kMaxWindowSide, true};
  const OpAttribute padding{"padding", Is::kSides, 0, hw::kMaxWindowSide, true};
  const std::vector<OpAttribute> convolution = {
      stride, padding, {"groups", Is::kCount, 1, hw::kMaxPictureChannels, true}};
  const std::vector<OpAttribute> pool = {{"rows", Is::kCount, 1, hw::kMaxWindowSide},
                                         {"cols", Is::kCount, 1, hw::kMaxWindowSide},
                                         stride,
                                         padding};
  std::vector<OpAttribute> integer_mean = pool;
  integer_mean.push_back({"factor", Is::kFactor});
  const OpAttribute levels{"levels", Is::kCount, 2, kMostLevels, true};
  const OpAttribute bits{"bits", Is::kCount, 2, kMostBits, true};
  std::vector<OpAttribute> integer_convolution = convolution;
  integer_convolution.push_back(bits);
  return {
      {"embedding",
       "the row of a table for each id",
       "ids [t], table [v, d] -> [t, d]",
       {{{"ids"}, {"table", In::kReal}}, {}},
       {{{"ids"}, {"table", In::kWords}}, {}}},
      {"scaled_embedding",
       "the row of a table for each id, times the factor of the row",
       "ids [t], table [v, d], multiplier [v], shift [v] -> [t, d]",
       {},
       {{{"ids"}, {"table", In::kCodes}, {"multiplier", In::kWords}, {"shift", In::kCodes}}, {}}},
      {"positions",
       "the rows of a table from `offset` on, one for each token",
       "table [p, d] -> [tokens, d]",
       {{{"table", In::kReal}}, offset},
       {{{"table", In::kWords}}, offset}},
      {"add",
       "the sum; of integers, `a` times its factor first, and clamped to the residual stream",
       "a [t, d], b [t, d] -> [t, d]",
       {{{"a"}, {"b"}}, {}},
       {{{"a"}, {"b"}}, {{"factor", Is::kFactor, 0, 0, true}}}},
      {"add_table",
       "the sum with a constant, row by row",
       "x [t, d], table [t, d] -> [t, d]",
       {{{"x"}, {"table", In::kReal}}, {}},
       {{{"x"}, {"table", In::kWords}}, {}}},
      {"layer_norm",
       "each row less its mean over its deviation, times weight plus bias",
       "x [t, d], weight [d], bias [d] -> [t, d]",
       {{{"x"}, {"weight", In::kReal}, {"bias", In::kReal}}, {{"epsilon", Is::kReal, 0, 1}}},
       {{{"x"}, {"multiplier", In::kWords}, {"bias", In::kWords}},
        {{"shift", Is::kCount, 0, kMostShift}}}},
      {"rms_norm",
       "each row over the root of its mean square, times weight; with `heads`, the part of a row "
       "that is a head's",
       "x [t, d], weight [d / heads] -> [t, d]",
       {{{"x"}, {"weight", In::kReal}}, {{"epsilon", Is::kReal, 0, 1}, own_heads}},
       {{{"x"}, {"multiplier", In::kWords}},
        {{"shift", Is::kCount, 0, kMostShift},
         {"fraction_bits", Is::kCount, 1, hw::kLayerNormMaxFractionBits},
         own_heads}}},
      {"quantise_rows",
       "codes of 8 bits of each row, whose largest magnitude becomes 127",
       "x [t, d] -> [t, d]",
       {},
       {{{"x"}}, {}}},
      {"linear",
       "x times the transposed weight, plus bias; of integers, times a factor per output, in "
       "`bits` if it says so; weights in groups of 32: of four bits with a scale and a minimum, or "
       "of a "
       "`format` of MX with a scale",
       "x [t, k], weight [n, k], bias [n], multiplier [n], shift [n], group_scale and "
       "group_minimum [n, k / 32] -> [t, n]",
       {linear, {}},
       {grouped_linear, {bits, format}}},
      {"gelu", "x times the normal distribution's cumulative", "x [t, d] -> [t, d]", gelu,
       integer_gelu},
      {"silu",
       "x times its logistic function",
       "x [t, d] -> [t, d]",
       {{{"x"}}, {}},
       {{{"x"}},
        {{"argument", Is::kFactor},
         {"fraction_bits", Is::kCount, hw::kMinExpFractionBits, hw::kMaxSiluFractionBits},
         {"factor", Is::kFactor}}}},
      {"tanh",
       "its hyperbolic tangent",
       "x [t, d] -> [t, d]",
       {{{"x"}}, {}},
       {{{"x"}},
        {{"argument", Is::kFactor},
         {"fraction_bits", Is::kCount, hw::kMinExpFractionBits, hw::kMaxSiluFractionBits},
         {"factor", Is::kFactor}}}},
      {"relu", "x, or 0 where it is negative", "x [t, d] -> [t, d]", {{{"x"}}, {}}, {{{"x"}}, {}}},
      {"scale",
       "`factor` times x",
       "x [t, d] -> [t, d]",
       {{{"x"}}, {{"factor", Is::kReal, -kMostReal, kMostReal}}},
       {}},
      {"route",
       "the softmax of the `active` largest of each row, of equal ones the first; 0 for the "
       "others; "
       "of integers in steps of 2^-8",
       "x [t, e] -> [t, e]",
       {{{"x"}}, {{"active", Is::kCount, 1, kMostExperts}}},
       {{{"x"}}, {{"active", Is::kCount, 1, kMostExperts}}}},
      {"weigh",
       "x times column `expert` of the shares; of integers divided by 2^`shift`",
       "x [t, d], shares [t, e] -> [t, d]",
       {{{"x"}, {"shares"}}, {{"expert", Is::kCount, 0, kMostExperts - 1}}},
       {{{"x"}, {"shares"}},
        {{"expert", Is::kCount, 0, kMostExperts - 1}, {"shift", Is::kCount, 0, kMostShift}}}},
      {"multiply",
       "the product of elements; of integers divided by 2^`shift`",
       "a [t, d], b [t, d] -> [t, d]",
       {{{"a"}, {"b"}}, {}},
       {{{"a"}, {"b"}}, {{"shift", Is::kCount, 0, kMostShift}}}},
      {"divide",
       "the quotient of elements; of integers times 2^`shift`; of integers `a` over 0 is the "
       "largest code with the sign of `a`, or 0",
       "a [t, d], b [t, d] -> [t, d]",
       {{{"a"}, {"b"}}, {}},
       {{{"a"}, {"b"}}, {{"shift", Is::kCount, 0, hw::kMaxDivideShift}}}},
      {"rope",
       "pairs of features of a head turned by the position times `base`^(-2i / head width), or "
       "times pair i of `frequencies`: "
       "neighbours if `interleaved` and of integers, else i and i + half",
       "x [t, d] -> [t, d]",
       {{{"x"}}, {heads, base, {"interleaved", Is::kFlag, 0, 0, true}, positions, frequencies}},
       {{{"x"}}, {heads, base, positions, frequencies}}},
      {"attention",
       "softmax(q k' / sqrt(head width)) v, head by head; `heads` / `kv_heads` heads share keys "
       "and "
       "values; a causal one may read the last `window` tokens alone",
       "q [t, d], k [t, e], v [t, e], keep [heads, t, t / 8] -> [t, d]",
       {attention, {heads, causal, kv_heads, window}},
       {attention,
        {heads,
         causal,
         kv_heads,
         window,
         {"score", Is::kFactor},
         {"exp_to_code", Is::kFactor},
         {"context", Is::kFactor}}}},
      {"head_mix",
       "a linear layer across heads, the same for every feature of a head",
       "x [t, a w], weight [b, a], bias [b], multiplier [b], shift [b] -> [t, b w]",
       {linear, {}},
       {integer_linear, {}}},
      {"normalise",
       "(x times `rescale` less mean) over deviation, channel by channel; of integers (x times "
       "multiplier plus addend) / 2^`shift`; samples have `levels`, 256 if it does not say",
       "x [c, s, s], multiplier and addend [c] -> [c, s, s]",
       {{{"x"}},
        {{"rescale", Is::kReal, 1e-6, kMostReal},
         {"mean", Is::kReals, -kMostReal, kMostReal},
         {"deviation", Is::kReals, 1e-6, kMostReal},
         levels}},
       {{{"x"}, {"multiplier", In::kWords}, {"addend", In::kWords}},
        {{"shift", Is::kCount, 0, kMostShift}, levels}}},
      {"patches",
       "square patches of a picture of `levels` enlarged `upsample` times, each a row",
       "x [c, s, s] -> [(s upsample / patch)^2, c patch^2]",
       {{{"x"}}, patches},
       {{{"x"}}, patches}},
      {"prepend",
       "a constant row before the others",
       "x [t, d], row [1, d] -> [t + 1, d]",
       {{{"x"}, {"row", In::kReal}}, {}},
       {{{"x"}, {"row", In::kWords}}, {}}},
      {"select_row", "one row", "x [t, d] -> [1, d]", {{{"x"}}, row}, {{{"x"}}, row}},
      {"convolution",
       "the pixels under a window times weights, plus bias; of integers, times a factor per "
       "output, in `bits` if it says so; `stride` 1, `padding` 0 and `groups` 1 where they are "
       "left out; `padding` may be "
       "[top, left, bottom, right]",
       "x [c, h, w], weight [n, c / groups, rows, cols], bias [n], multiplier [n], shift [n] -> "
       "[n, h', w']",
       {linear, convolution},
       {integer_linear, integer_convolution}},
      {"max_pool",
       "channel by channel the largest pixel under a window; padding does not count",
       "x [c, h, w] -> [c, h', w']",
       {{{"x"}}, pool},
       {{{"x"}}, pool}},
      {"average_pool",
       "channel by channel the mean of the pixels under a window; padding counts as zeros; of "
       "integers their sum times `factor`",
       "x [c, h, w] -> [c, h', w']",
       {{{"x"}}, pool},
       {{{"x"}}, integer_mean}},
      {"pad",
       "`padding` zeros on each side of a picture",
       "x [c, h, w] -> [c, h + top + bottom, w + left + right]",
       {{{"x"}}, {{"padding", Is::kSides, 0, hw::kMaxWindowSide}}},
       {{{"x"}}, {{"padding", Is::kSides, 0, hw::kMaxWindowSide}}}},
      {"requantise",
       "codes of another scale: x times `factor`, clamped to the type of the result or its `bits`",
       "x [t, d] -> [t, d]",
       {},
       {{{"x"}}, {{"factor", Is::kFactor}, bits}}},
  };
}

/// The schema of an attribute's value.
ordered_json attribute_schema(const OpAttribute& attribute) {
  ordered_json whole = {{"type", "integer"}};
  ordered_json real = {{"type", "number"}, {"minimum", attribute.low}, {"maximum", attribute.high}};
  switch (attribute.kind) {
    case Is::kCount:
      return {{"type", "integer"},
              {"minimum", static_cast<std::int64_t>(attribute.low)},
              {"maximum", static_cast<std::int64_t>(attribute.high)}};
    case Is::kInteger:
      return whole;
    case Is::kReal:
      return real;
    case Is::kReals:
      return {{"type", "array"}, {"items", real}};
    case Is::kSides: {
      const ordered_json side = {{"type", "integer"},
                                 {"minimum", static_cast<std::int64_t>(attribute.low)},
                                 {"maximum", static_cast<std::int64_t>(attribute.high)}};
      return {{"oneOf",
               {side, {{"type", "array"}, {"items", side}, {"minItems", 4}, {"maxItems", 4}}}}};
    }
    case Is::kFlag:
      return {{"type", "boolean"}};
    case Is::kWord:
      return {{"enum", attribute.words}};
    case Is::kFactor:
      break;
  }
  return {{"type", "array"}, {"items", whole}, {"minItems", 2}, {"maxItems", 2}};
}

ordered_json form_schema(const NetworkOp& op, const OpForm& form) {
  const auto optional = std::count_if(form.inputs.begin(), form.inputs.end(),
                                      [](const OpInput& input) { return input.optional; });
  const std::size_t most = form.inputs.size();
  ordered_json values = ordered_json::object(), required = ordered_json::array();
  for (const OpAttribute& attribute : form.attributes) {
    values[std::string(attribute.name)] = attribute_schema(attribute);
    if (!attribute.optional) required.push_back(attribute.name);
  }
  return {
      {"properties",
       {{"op", {{"const", op.name}}},
        {"inputs", {{"minItems", most - static_cast<std::size_t>(optional)}, {"maxItems", most}}},
        {"attributes",
         {{"properties", values}, {"required", required}, {"additionalProperties", false}}}}}};
}

}  // namespace

const std::vector<NetworkOp>& network_ops() {
  static const std::vector<NetworkOp> ops = make_ops();
  return ops;
}

const NetworkOp* find_network_op(std::string_view name) {
  for (const NetworkOp& op : network_ops()) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

bool is_picture_op(std::string_view name) {
  return name == "convolution" || name == "max_pool" || name == "average_pool" || name == "pad";
}

std::vector<FileDtype> dtypes_of(OpInput::Kind kind) {
  switch (kind) {
    case In::kActivation:
      return {};
    case In::kReal:
      return kFloatDtypes;
    case In::kCodes:
      return {FileDtype::kI8};
    case In::kWords:
      return {FileDtype::kI32};
    case In::kBytes:
    case In::kMask:
      break;
  }
  return {FileDtype::kU8};
}

ordered_json network_schema() {
  const ordered_json name = {{"type", "string"}, {"minLength", 1}};
  const ordered_json names = {{"type", "array"}, {"items", name}, {"minItems", 1}};
  const ordered_json size = {
      {"oneOf", {{{"type", "integer"}, {"minimum", 1}}, {{"const", kTokensWord}}}}};
  const ordered_json scale = {
      {"oneOf",
       {{{"type", "number"}, {"exclusiveMinimum", 0}},
        {{"type", "object"},
         {"properties", {{"axis", {{"type", "integer"}, {"minimum", 0}}}, {"values", name}}},
         {"required", {"axis", "values"}},
         {"additionalProperties", false}}}}};
  const ordered_json tensor = {{"type", "object"},
                               {"properties",
                                {{"type", {{"enum", {"f32", "i64", "u8", "s8", "s16", "s32"}}}},
                                 {"shape", {{"type", "array"}, {"items", size}}},
                                 {"scale", scale}}},
                               {"additionalProperties", false}};
  ordered_json forms = ordered_json::array();
  for (const NetworkOp& op : network_ops()) {
    for (const OpForm* form : {&op.real, &op.integer}) {
      if (form->inputs.empty()) continue;
      const ordered_json schema = form_schema(op, *form);
      if (forms.empty() || forms.back() != schema) forms.push_back(schema);
    }
  }
  const ordered_json node = {
      {"type", "object"},
      {"properties",
       {{"name", name},
        {"op", {{"type", "string"}}},
        {"inputs", names},
        {"outputs", {{"type", "array"}, {"items", name}, {"minItems", 1}, {"maxItems", 1}}},
        {"attributes", {{"type", "object"}}}}},
      {"required", {"name", "op", "inputs", "outputs", "attributes"}},
      {"additionalProperties", false},
      {"anyOf", forms}};
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "The document of a network file"},
          {"type", "object"},
          {"properties",
           {{"format_version", {{"const", kNetworkVersion}}},
            {"name", name},
            {"source", {{"type", "string"}}},
            {"architecture", {{"type", "object"}}},
            {"datapath", {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}}},
            {"inputs", names},
            {"outputs", names},
            {"tensors", {{"type", "object"}, {"additionalProperties", tensor}}},
            {"nodes", {{"type", "array"}, {"items", node}, {"minItems", 1}}}}},
          {"required",
           {"format_version", "name", "source", "architecture", "inputs", "outputs", "tensors",
            "nodes"}},
          {"additionalProperties", false}};
}

}  // namespace systole::model

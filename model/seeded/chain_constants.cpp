#include "model/seeded/chain_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "hw/function/divide.h"
#include "hw/function/silu.h"
#include "hw/function/tanh.h"
#include "model/integer/row_scales.h"
#include "model/seeded/seeded_constants.h"

namespace systole::model {
namespace {

/// Weights of an output that a sum of s32 holds.
constexpr std::int64_t kMostChainInputs = 1 << 16;
/// Of all weights of a chain.
constexpr std::int64_t kMostChainBytes = std::int64_t{1} << 28;
constexpr unsigned kChainExponentialBits = 10;

/// Rows and columns; what else an operand is makes no table of constants.
const NetworkShape& matrix_shape(const ChainNode& node, std::size_t index = 0) {
  const NetworkShape& shape = node.shapes[index];
  if (shape.size() == 2) return shape;
  throw hw::InputError(fmt::format("input '{}': shape is {}, expected rows and columns",
                                   hw::printable(node.node.inputs[index]),
                                   network_shape_text(shape)));
}

const std::string& type_or(ChainNode& node, const std::string& otherwise) {
  if (node.type.empty()) node.type = otherwise;
  return node.type;
}

std::string stream_type(const hw::Machine::Datapath& datapath) {
  return datapath.residual_bits <= 16 ? "s16" : "s32";
}

}  // namespace

double code_deviation(const std::string& type, const hw::Machine::Datapath& datapath) {
  return type == "s8" ? kOperandDeviation : stream_deviation(datapath);
}

ChainConstants::ChainConstants(NetworkWriter& writer, const std::string& place, std::uint64_t seed,
                               const hw::Machine::Datapath& datapath)
    : writer_(writer),
      seed_(seed),
      datapath_(datapath),
      quantiser_(place, datapath.multiplier_bits, true) {}

double ChainConstants::spread(const std::string& type) const {
  return code_deviation(type, datapath_);
}

void ChainConstants::set(ChainNode& node, const char* name,
                         const nlohmann::ordered_json& value) const {
  if (!node.attributes.contains(name)) node.attributes[name] = value;
}

void ChainConstants::set_factor(ChainNode& node, const char* name, double value) const {
  if (node.attributes.contains(name)) return;
  node.attributes[name] = factor_json(quantiser_.factor(node.node.name, value));
}

template <typename T>
void ChainConstants::add_constant(ChainNode& node, const char* role, FileDtype dtype,
                                  const NetworkShape& shape, const std::vector<T>& values) {
  const std::string name = node.node.name + "." + role;
  node.node.inputs.push_back(writer_.constant(
      make_tensor(name, dtype, std::vector<std::size_t>(shape.begin(), shape.end()), values)));
  node.shapes.push_back(shape);
}

void ChainConstants::fill(ChainNode& node) {
  const NetworkNode& of = node.node;
  const ChainValue& x = *node.operands[0];
  if (of.is("linear") || of.is("convolution")) return fill_weights(node);
  if (of.is("add") || of.is("add_table")) return fill_sum(node);
  if (of.is("silu") || of.is("tanh")) return fill_sigmoid(node);
  if (of.is("layer_norm")) return fill_norm(node);
  if (of.is("attention")) return fill_attention(node);
  if (of.is("multiply")) return fill_product(node);
  if (of.is("divide")) return fill_quotient(node);
  if (of.is("average_pool")) return fill_mean(node);
  if (of.is("gelu")) return fill_gelu(node);
  if (of.is("max_pool") || of.is("pad")) {
    type_or(node, x.type);
    node.deviation = x.deviation;
    return;
  }
  node.deviation = spread(type_or(node, "s8"));
  if (of.is("relu")) node.deviation = kReluDeviation * x.deviation;
  if (of.is("requantise")) set_factor(node, "factor", node.deviation / x.deviation);
}

void ChainConstants::fill_weights(ChainNode& node) {
  node.deviation = spread(type_or(node, "s8"));
  const bool picture = node.node.is("convolution");
  const NetworkShape& x = picture ? node.shapes[0] : matrix_shape(node);
  if (picture && x.size() != 3) {
    throw hw::InputError(fmt::format("input '{}': shape is {}, expected [channels, height, width]",
                                     hw::printable(node.node.inputs[0]), network_shape_text(x)));
  }
  const std::int64_t outputs = node.sizes.at("outputs");
  NetworkShape weight = {outputs, x.back()};
  if (picture) {
    const std::int64_t groups = node.attributes.value("groups", std::int64_t{1});
    weight = {outputs, std::max<std::int64_t>(1, x[0] / groups), node.sizes.at("rows"),
              node.sizes.at("cols")};
  }
  std::int64_t inputs = 1;
  for (std::size_t i = 1; i < weight.size(); ++i) inputs *= weight[i];
  constant_bytes_ += outputs * inputs;
  if (inputs > kMostChainInputs || constant_bytes_ > kMostChainBytes) {
    throw hw::InputError(
        fmt::format("weights of {}, expected at most {} of an output and {} bytes of all nodes",
                    network_shape_text(weight), kMostChainInputs, kMostChainBytes));
  }
  const IntegerLinear layer =
      seeded_linear(quantiser_, {node.node.name, seed_, layers_++, true, true},
                    static_cast<std::uint32_t>(inputs), static_cast<std::uint32_t>(outputs),
                    node.operands[0]->deviation, node.deviation);
  std::vector<std::int32_t> multipliers;
  std::vector<std::int8_t> shifts;
  for (const hw::Dyadic& factor : layer.factor) {
    multipliers.push_back(factor.multiplier);
    shifts.push_back(factor.shift);
  }
  add_constant(node, "weight", FileDtype::kI8, weight, layer.weight.get());
  add_constant(node, "bias", FileDtype::kI32, {outputs}, layer.bias);
  add_constant(node, "multiplier", FileDtype::kI32, {outputs}, multipliers);
  add_constant(node, "shift", FileDtype::kI8, {outputs}, shifts);
}

void ChainConstants::fill_sum(ChainNode& node) {
  type_or(node, stream_type(datapath_));
  const double a = node.operands[0]->deviation;
  if (node.node.is("add")) {
    const double b = node.operands[1]->deviation;
    if (a != b) set_factor(node, "factor", b / a);
    node.deviation = b * std::sqrt(2.0);
    return;
  }
  const NetworkShape& shape = matrix_shape(node);
  SeededNumbers numbers(seed_, SeedPurpose::kConstants, layers_++);
  std::vector<std::int32_t> table(static_cast<std::size_t>(shape[0] * shape[1]));
  for (std::int32_t& word : table) {
    word = static_cast<std::int32_t>(std::lrint(numbers.normal(kBranchShare * a)));
  }
  add_constant(node, "table", FileDtype::kI32, shape, table);
  node.deviation = a * std::hypot(1.0, kBranchShare);
}

void ChainConstants::fill_product(ChainNode& node) const {
  type_or(node, "s16");
  const double product = node.operands[0]->deviation * node.operands[1]->deviation;
  const double shift = node.type == "s16" ? std::log2(product / spread(node.type)) : 0.0;
  set(node, "shift", std::max(0L, std::lround(shift)));
  node.deviation = std::ldexp(product, -node.attributes.value("shift", 0));
}

void ChainConstants::fill_quotient(ChainNode& node) const {
  const double quotient = node.operands[0]->deviation / node.operands[1]->deviation;
  const double shift = std::log2(spread(type_or(node, "s16")) / quotient);
  set(node, "shift", std::clamp(std::lround(shift), 0L, long{hw::kMaxDivideShift}));
  node.deviation = std::ldexp(quotient, node.attributes.value("shift", 0));
}

void ChainConstants::fill_mean(ChainNode& node) const {
  type_or(node, "s8");
  const double pixels = node.attributes.value("rows", 1.0) * node.attributes.value("cols", 1.0);
  set_factor(node, "factor", std::min(kMeanGain, std::sqrt(pixels)) / pixels);
  node.deviation = node.operands[0]->deviation;
}

void ChainConstants::fill_sigmoid(ChainNode& node) const {
  const bool silu = node.node.is("silu");
  type_or(node, silu ? "s16" : "s8");
  const double in = 1.0 / node.operands[0]->deviation;
  const auto bits = node.attributes.value("fraction_bits", kChainExponentialBits);
  if (silu) {
    const double out = spread(node.type);
    const hw::SiluConstants of =
        hw::make_silu_constants(in, 1.0 / out, datapath_.multiplier_bits, bits);
    set(node, "argument", factor_json(of.argument));
    set(node, "factor", factor_json(of.output));
    node.deviation = kGeluDeviation * out;
  } else {
    const hw::TanhConstants of =
        hw::make_tanh_constants(in, 1.0 / kLargestCode, datapath_.multiplier_bits, bits);
    set(node, "argument", factor_json(of.argument));
    set(node, "factor", factor_json(of.output));
    node.deviation = kReluDeviation * kLargestCode;
  }
  set(node, "fraction_bits", bits);
}

void ChainConstants::fill_gelu(ChainNode& node) const {
  type_or(node, "s8");
  node.deviation = kGeluDeviation * kOperandDeviation;
  const hw::GeluConstants gelu = quantiser_.gelu(node.node.name, 1.0 / node.operands[0]->deviation,
                                                 1.0 / kOperandDeviation, value_bits(false));
  set(node, "b", gelu.b);
  set(node, "c", gelu.c);
  set(node, "one", gelu.one);
  set(node, "factor", factor_json(gelu.output));
}

void ChainConstants::fill_norm(ChainNode& node) {
  type_or(node, "s8");
  node.deviation = kOperandDeviation;
  const NetworkShape shape = matrix_shape(node);
  SeededNumbers constants(seed_, SeedPurpose::kConstants, layers_++);
  FloatNorm norm;
  for (std::int64_t i = 0; i < shape[1]; ++i) {
    norm.weight.push_back(constants.uniform(0.8, 1.2));
    norm.bias.push_back(constants.normal(0.1));
  }
  const IntegerLayerNorm of = quantiser_.layer_norm(node.node.name, norm, 1.0 / kOperandDeviation);
  set(node, "shift", of.shift);
  add_constant(node, "multiplier", FileDtype::kI32, {shape[1]}, of.multiplier);
  add_constant(node, "bias", FileDtype::kI32, {shape[1]}, of.addend);
}

void ChainConstants::fill_attention(ChainNode& node) const {
  type_or(node, "s8");
  node.deviation = kOperandDeviation;
  set(node, "causal", false);
  if (!node.attributes.contains("heads")) throw hw::InputError("heads is missing");
  const NetworkShape &query = matrix_shape(node), &key = matrix_shape(node, 1);
  const auto heads = node.attributes["heads"].get<std::int64_t>();
  if (query[1] % heads != 0) {
    throw hw::InputError(fmt::format("input '{}': {} columns, expected a multiple of {} heads",
                                     hw::printable(node.node.inputs[0]), query[1], heads));
  }
  set_factor(node, "score", seeded_score_factor(static_cast<std::uint32_t>(query[1] / heads)));
  set(node, "exp_to_code", factor_json(quantiser_.exp_to_code(datapath_.softmax_bits)));
  set_factor(node, "context",
             std::ldexp(1.0 / mean_deviation(static_cast<std::uint32_t>(key[0])),
                        -context_fraction_bits(datapath_)));
}

}  // namespace systole::model

#include "model/build/operator_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "hw/function/layernorm.h"
#include "hw/number/dtype.h"
#include "hw/number/int_exp.h"
#include "model/build/convolution_nodes.h"
#include "model/build/linear_nodes.h"
#include "model/graph/stages.h"
#include "model/integer/integer_network.h"
#include "model/network/network_shapes.h"
#include "model/network/network_walk.h"

namespace systole::model {
namespace {

constexpr std::int64_t kLargestByte = 255;
constexpr std::int64_t kLargestCodeMagnitude = 128;

unsigned bits_of(hw::DType type) { return 8 * static_cast<unsigned>(hw::bytes_of(type)); }

hw::Stage whole_range_clamp(hw::DType type) {
  const hw::IntRange range = hw::range_of(type);
  hw::Stage stage = clamp_stage(bits_of(type));
  stage.imm = {range.lo, range.hi};
  return stage;
}

}  // namespace

hw::DType value_dtype(const std::string& type) {
  if (type == "u8") return hw::DType::kU8;
  if (type == "s8") return hw::DType::kS8;
  return type == "s16" ? hw::DType::kS16 : hw::DType::kS32;
}

const View& OperatorRules::in(const NetworkNode& node, std::size_t index) const {
  return values_.at(node.inputs[index]);
}

hw::DType OperatorRules::result_type(const NetworkNode& node) const {
  return value_dtype(file_.document().tensors.at(node.output).type);
}

unsigned OperatorRules::result_bits(const NetworkNode& node) const {
  const unsigned bits = bits_of(result_type(node));
  return std::min(bits, number(node, "bits", bits));
}

std::uint32_t OperatorRules::number(const NetworkNode& node, const char* name,
                                    std::uint32_t otherwise) {
  return node.attributes.value(name, otherwise);
}

hw::Dyadic OperatorRules::factor(const NetworkNode& node, const char* name,
                                 std::int64_t lowest) const {
  const hw::Dyadic factor = factor_of(node, name);
  check_.factor(node.name + "." + name, factor, lowest);
  return factor;
}

IntegerLinear OperatorRules::layer(const NetworkNode& node) {
  if (node.inputs.size() > kUngroupedOperands) {
    file_.fail(node, "input 'group_scale': expected weights in groups in Llamas alone");
  }
  IntegerLinear layer;
  read_linear(file_, node, layer, true);
  const std::vector<std::size_t>& shape = file_.constants().tensor(node.inputs[1]).shape;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    layer.inputs *= static_cast<std::uint32_t>(shape[i]);
  }
  check_.linear(node.name, layer,
                type(in(node)) == hw::DType::kU8 ? kLargestByte : kLargestCodeMagnitude);
  return layer;
}

View OperatorRules::linear(const NetworkNode& node) {
  const IntegerLinear of = layer(node);
  const hw::DType to = result_type(node);
  const View sums = linear_product(builder_, node.name, in(node), of);
  return builder_.stage(node.name + ".requantise", sums,
                        factor_stage(of, result_bits(node), datapath_.rounding), to,
                        {factor_parameters(of), {}});
}

hw::Window OperatorRules::window_of(const NetworkNode& node, hw::Gather gather, std::size_t rows,
                                    std::size_t cols) const {
  const NetworkShape shape = file_.shape_of(node.inputs[0]);
  hw::Window window;
  window.gather = gather;
  window.kernel_rows = static_cast<std::uint16_t>(rows);
  window.kernel_cols = static_cast<std::uint16_t>(cols);
  window.stride = static_cast<std::uint16_t>(number(node, "stride", 1));
  window.padding = padding_of(node);
  window.channels = static_cast<std::uint32_t>(shape[0]);
  window.height = static_cast<std::uint32_t>(shape[1]);
  window.width = static_cast<std::uint32_t>(shape[2]);
  return window;
}

void OperatorRules::turn_weights(IntegerLinear& layer, std::size_t pixels) {
  const std::size_t channels = layer.inputs / pixels;
  const hw::SharedVector<std::int8_t> planes = layer.weight;
  std::vector<std::int8_t>& pictures = layer.weight.edit();
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    const std::size_t first = o * layer.inputs;
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = 0; p < pixels; ++p) {
        pictures[first + p * channels + c] = planes[first + c * pixels + p];
      }
    }
  }
}

View OperatorRules::convolution(const NetworkNode& node) {
  const std::vector<std::size_t>& shape = file_.constants().tensor(node.inputs[1]).shape;
  IntegerConvolution of;
  of.window = window_of(node, hw::Gather::kPatches, shape[2], shape[3]);
  of.groups = number(node, "groups", 1);
  of.linear = layer(node);
  of.type = result_type(node);
  of.range = hw::symmetric_range(result_bits(node));
  turn_weights(of.linear, of.window.pixels());
  // The parts of its groups are products of their own: no stage on all of them can join one.
  if (of.groups != 1 && of.type == hw::DType::kS8 && only_relu(node) != nullptr) {
    of.range.lo = 0;
    rectified_.insert(node.output);
  }
  return add_convolution(builder_, node.name, in(node), of, datapath_.rounding);
}

View OperatorRules::pooling(const NetworkNode& node, hw::Gather gather, const hw::Stage& stage) {
  const auto rows = node.attributes.at("rows").get<std::size_t>();
  const auto cols = node.attributes.at("cols").get<std::size_t>();
  return builder_.pooling(node.name, in(node), window_of(node, gather, rows, cols), stage,
                          result_type(node));
}

View OperatorRules::max_pool(const NetworkNode& node) {
  return pooling(node, hw::Gather::kMaximum, whole_range_clamp(result_type(node)));
}

View OperatorRules::average_pool(const NetworkNode& node) {
  return pooling(node, hw::Gather::kSum,
                 requantise_stage(factor(node, "factor"), kOperandBits, datapath_.rounding));
}

View OperatorRules::pad(const NetworkNode& node) {
  return builder_.pooling(node.name, in(node), window_of(node, hw::Gather::kSum, 1, 1),
                          whole_range_clamp(result_type(node)), result_type(node));
}

View OperatorRules::clamped(const std::string& name, const View& sum, hw::DType to) {
  const unsigned bits = std::min(bits_of(to), unsigned{datapath_.residual_bits});
  return builder_.stage(name + ".clamp", sum, clamp_stage(bits), to);
}

View OperatorRules::add(const NetworkNode& node) {
  const hw::Dyadic identity =
      node.attributes.contains("factor") ? factor(node, "factor", 1) : hw::Dyadic{};
  const View sum =
      builder_.stage(node.name, in(node, 1),
                     add_tensor_stage(type(in(node)), identity, kBranchBits, datapath_.rounding),
                     hw::DType::kS32, {{}, in(node)});
  return clamped(node.name, sum, result_type(node));
}

View OperatorRules::add_table(const NetworkNode& node) {
  const auto words = file_.constants().copy<std::int32_t>(node.inputs[1]);
  Tensor table;
  table.name = node.name + ".table";
  table.rows = in(node).rows;
  table.cols = in(node).cols;
  table.type = hw::DType::kS32;
  table.kind = Tensor::Kind::kConstant;
  std::vector<std::uint8_t> bytes(words.size() * sizeof(std::int32_t));
  if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  table.data = std::move(bytes);
  const View operand = builder_.whole(builder_.add_tensor(std::move(table)));
  const View sum = builder_.stage(
      node.name, in(node), add_tensor_stage(hw::DType::kS32, {}, kBranchBits, datapath_.rounding),
      hw::DType::kS32, {{}, operand});
  return clamped(node.name, sum, result_type(node));
}

View OperatorRules::requantise(const NetworkNode& node) {
  const hw::DType to = result_type(node);
  return builder_.stage(
      node.name, in(node),
      requantise_stage(factor(node, "factor"), result_bits(node), datapath_.rounding), to);
}

View OperatorRules::with_tensor(const NetworkNode& node, TensorStage* stage) {
  const hw::DType to = result_type(node);
  return builder_.stage(node.name, in(node),
                        stage(type(in(node, 1)), node.attributes.at("shift").get<unsigned>(),
                              bits_of(to), datapath_.rounding),
                        to, {{}, in(node, 1)});
}

View OperatorRules::multiply(const NetworkNode& node) {
  return with_tensor(node, multiply_tensor_stage);
}

View OperatorRules::divide(const NetworkNode& node) {
  return with_tensor(node, divide_tensor_stage);
}

const NetworkNode* OperatorRules::only_relu(const NetworkNode& node) const {
  const NetworkDocument& document = file_.document();
  const NetworkNode* reader = nullptr;
  for (const NetworkNode& other : document.nodes) {
    if (std::find(other.inputs.begin(), other.inputs.end(), node.output) == other.inputs.end()) {
      continue;
    }
    if (reader != nullptr || !other.is("relu")) return nullptr;
    reader = &other;
  }
  const auto& outputs = document.outputs;
  const bool leaves = std::find(outputs.begin(), outputs.end(), node.output) != outputs.end();
  return leaves ? nullptr : reader;
}

View OperatorRules::relu(const NetworkNode& node) {
  if (rectified_.count(node.inputs[0]) != 0) return in(node);
  return builder_.stage(node.name, in(node), hw::default_stage(hw::StageOp::kRelu),
                        result_type(node));
}

View OperatorRules::gelu(const NetworkNode& node) {
  const auto constant = [&](const char* name) {
    return node.attributes.at(name).get<std::int64_t>();
  };
  const hw::GeluConstants gelu{constant("b"), constant("c"), constant("one"),
                               factor_of(node, "factor")};
  check_.gelu(node.name, gelu, bits_of(type(in(node))));
  return builder_.stage(node.name, in(node), gelu_stage(gelu, bits_of(result_type(node))),
                        result_type(node));
}

View OperatorRules::silu(const NetworkNode& node) {
  const hw::SiluConstants silu{factor(node, "argument"), exponential(node), factor(node, "factor")};
  return builder_.stage(node.name, in(node), silu_stage(silu, bits_of(result_type(node))),
                        result_type(node));
}

View OperatorRules::tanh(const NetworkNode& node) {
  const hw::TanhConstants tanh{factor(node, "argument"), exponential(node), factor(node, "factor")};
  return builder_.stage(node.name, in(node), tanh_stage(tanh, bits_of(result_type(node))),
                        result_type(node));
}

hw::IntExpConstants OperatorRules::exponential(const NetworkNode& node) {
  return hw::make_int_exp_constants(node.attributes.at("fraction_bits").get<unsigned>());
}

View OperatorRules::layer_norm(const NetworkNode& node) {
  IntegerLayerNorm norm;
  norm.multiplier = file_.constants().copy<std::int32_t>(node.inputs[1]);
  norm.addend = file_.constants().copy<std::int32_t>(node.inputs[2]);
  norm.shift = node.attributes.at("shift").get<std::uint32_t>();
  norm.scale = 1.0;  // the file may leave it out
  check_.norm(node.name, norm);
  std::vector<std::int32_t> words = norm.multiplier;
  words.insert(words.end(), norm.addend.begin(), norm.addend.end());
  return builder_.stage(
      node.name, in(node),
      layer_norm_stage(hw::kLayerNormFractionBits, norm.shift, bits_of(result_type(node))),
      result_type(node), {std::move(words), {}});
}

View OperatorRules::attention(const NetworkNode& node) {
  const auto heads = node.attributes.at("heads").get<std::uint32_t>();
  if (number(node, "kv_heads", heads) != heads || node.inputs.size() > 3 ||
      node.attributes.contains("window")) {
    file_.fail(node,
               "expected an attention whose heads have their own keys, without mask and window");
  }
  Tensor tensor;
  tensor.name = node.name;
  tensor.rows = in(node).rows;
  tensor.cols = in(node).cols;
  tensor.type = result_type(node);
  const View context = builder_.whole(builder_.add_tensor(std::move(tensor)));
  const std::uint32_t width = context.cols / heads;
  for (std::uint32_t h = 0; h < heads; ++h) {
    AttentionHead head;
    head.query = columns_of(in(node, 0), h * width, width);
    head.key = columns_of(in(node, 1), h * width, width);
    head.value = columns_of(in(node, 2), h * width, width);
    head.context = columns_of(context, h * width, width);
    head.score = factor(node, "score");
    head.context_factor = factor(node, "context");
    head.exp_to_code = factor(node, "exp_to_code");
    head.causal = node.attributes.at("causal").get<bool>();
    add_attention_head(builder_, fmt::format("{}.head{}.", node.name, h), datapath_, head);
  }
  return context;
}

const std::map<std::string_view, OperatorRules::Rule>& OperatorRules::rules() {
  static const std::map<std::string_view, Rule> rules = {
      {"linear", &OperatorRules::linear},
      {"convolution", &OperatorRules::convolution},
      {"max_pool", &OperatorRules::max_pool},
      {"average_pool", &OperatorRules::average_pool},
      {"pad", &OperatorRules::pad},
      {"add", &OperatorRules::add},
      {"add_table", &OperatorRules::add_table},
      {"requantise", &OperatorRules::requantise},
      {"multiply", &OperatorRules::multiply},
      {"divide", &OperatorRules::divide},
      {"relu", &OperatorRules::relu},
      {"gelu", &OperatorRules::gelu},
      {"silu", &OperatorRules::silu},
      {"tanh", &OperatorRules::tanh},
      {"layer_norm", &OperatorRules::layer_norm},
      {"attention", &OperatorRules::attention}};
  return rules;
}

}  // namespace systole::model

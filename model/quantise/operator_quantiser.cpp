#include "model/quantise/operator_quantiser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/function/divide.h"
#include "hw/number/integer.h"
#include "model/metadata/datapath_metadata.h"
#include "model/quantise/quantise_layers.h"

namespace systole::model {
namespace {

using nlohmann::ordered_json;

constexpr unsigned kSumBits = 16;
/// Fraction bits of the codes of pictures: a sample's weight and the addend have them.
constexpr unsigned kPictureShift = 20;
/// Of a quotient, before it gets 8.
constexpr unsigned kQuotientBits = 16;

class OperatorQuantiser {
 public:
  OperatorQuantiser(const FloatOperators& network, const Dataset& calibration,
                    const std::string& name, const QuantiserOptions& options)
      : file_(network.file()),
        options_(options),
        layers_(hw::printable(file_.path()), options.datapath.multiplier_bits, options.per_channel),
        writer_(name, fmt::format("quantised from {}, {} pictures", file_.document().name,
                                  calibration.count)) {
    if (options.outlier_alpha || options.fold_encoders) {
      throw hw::InputError(hw::printable(file_.path()) +
                           ": outliers and encoders are folded in Transformers alone, found "
                           "convolutions");
    }
    if (calibration.count == 0) throw hw::InputError("calibration: no pictures, expected some");
    for (std::size_t i = 0; i < calibration.count; ++i) {
      for (const auto& [value, picture] : network.run(calibration.image(i))) {
        double& largest = largest_[value];
        for (const double element : picture.values) {
          if (!std::isfinite(element)) {
            throw hw::InputError(
                fmt::format("{}: value '{}': no finite number in calibration "
                            "picture {}, expected no division by zero",
                            hw::printable(file_.path()), hw::printable(value), i));
          }
          largest = std::max(largest, std::fabs(element));
        }
      }
    }
    for (const NetworkNode& node : file_.document().nodes) {
      for (const std::string& input : node.inputs) readers_[input].push_back(&node);
    }
  }

  QuantisedOperators run() {
    const NetworkDocument& document = file_.document();
    writer_.set_datapath(datapath_metadata(options_.datapath));
    writer_.input(document.inputs.front(), {"u8", file_.shape_of(document.inputs.front())});
    for (const NetworkNode& node : document.nodes) append(node);
    return {std::move(writer_), document.outputs.front()};
  }

 private:
  /// The addition that alone reads a value, and may take it in its own scale; or null.
  [[nodiscard]] const NetworkNode* only_sum(const std::string& value) const {
    const auto found = readers_.find(value);
    if (found == readers_.end() || found->second.size() != 1) return nullptr;
    const NetworkNode* const reader = found->second.front();
    return reader->is("add") && branch_of(*reader) == value ? reader : nullptr;
  }

  /// The operand of an addition that is not scaled: a convolution that nothing else reads, if one
  /// is.
  [[nodiscard]] const std::string& branch_of(const NetworkNode& add) const {
    for (const std::size_t operand : {1U, 0U}) {
      const std::string& value = add.inputs[operand];
      const NetworkNode* const node = file_.producer(value);
      if (node != nullptr && node->is("convolution") && readers_.at(value).size() == 1)
        return value;
    }
    return add.inputs[1];
  }

  /// The largest magnitude that a value has to hold: what only a ReLU reads may be cut off below.
  [[nodiscard]] double range_of(const std::string& value) const {
    const auto found = readers_.find(value);
    const bool rectified =
        found != readers_.end() && found->second.size() == 1 && found->second.front()->is("relu");
    const double largest = largest_.at(rectified ? found->second.front()->output : value);
    return largest > 0 ? largest : 1.0;
  }

  /// Of the codes of a convolution: of int4 if convolutions by int4 weights alone read them, or a
  /// ReLU whose result they alone read.
  [[nodiscard]] unsigned bits_after(const NetworkNode& node) const {
    const auto found = readers_.find(node.output);
    if (options_.activation_bits == kWeightBits || found == readers_.end() || is_result(node)) {
      return kWeightBits;
    }
    const bool all = std::all_of(found->second.begin(), found->second.end(),
                                 [&](const NetworkNode* const reader) {
                                   if (reader->is("relu"))
                                     return bits_after(*reader) != kWeightBits;
                                   return reader->is("convolution") && !is_result(*reader);
                                 });
    return all ? options_.activation_bits : kWeightBits;
  }

  [[nodiscard]] bool is_result(const NetworkNode& node) const {
    return file_.document().outputs.front() == node.output;
  }
  [[nodiscard]] NetworkShape shape(const NetworkNode& node) const {
    return file_.shape_of(node.output);
  }
  [[nodiscard]] double scale(const NetworkNode& node, std::size_t operand = 0) const {
    return scales_.at(node.inputs[operand]);
  }
  [[nodiscard]] ordered_json factor(const std::string& name, double value) const {
    return factor_json(layers_.factor(name, value));
  }
  static ordered_json window(const NetworkNode& node) {
    ordered_json attributes = ordered_json::object();
    for (const char* const key : {"rows", "cols", "stride", "padding", "groups"}) {
      if (node.attributes.contains(key)) attributes[key] = node.attributes.at(key);
    }
    return attributes;
  }

  void emit(const NetworkNode& node, const char* op, const std::vector<std::string>& inputs,
            double value_scale, const ordered_json& attributes, const std::string& type = "s8") {
    writer_.node(node.output, op, inputs, {type, shape(node), value_scale}, attributes);
    scales_[node.output] = value_scale;
  }

  void append(const NetworkNode& node) {
    if (node.is("normalise")) return normalise(node);
    if (node.is("convolution")) return convolution(node);
    if (node.is("add")) return add(node);
    if (node.is("divide")) return divide(node);
    if (node.is("average_pool")) {
      const double pixels =
          node.attributes.at("rows").get<double>() * node.attributes.at("cols").get<double>();
      const double out = range_of(node.output) / kLargestCode;
      ordered_json attributes = window(node);
      attributes["factor"] = factor(node.name, scale(node) / (pixels * out));
      return emit(node, "average_pool", {node.inputs[0]}, out, attributes);
    }
    // Maxima, zeros and ReLU leave codes as they are.
    emit(node, node.op->name.data(), {node.inputs[0]}, scale(node), window(node));
  }

  void normalise(const NetworkNode& node) {
    const auto levels = node.attributes.value("levels", kByteLevels);
    const double rescale = node.attributes.at("rescale").get<double>();
    const auto mean = node.attributes.at("mean").get<std::vector<double>>();
    const auto deviation = node.attributes.at("deviation").get<std::vector<double>>();
    double largest = 0;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      for (const double sample : {0.0, levels - 1.0}) {
        largest = std::max(largest, std::fabs((sample * rescale - mean[c]) / deviation[c]));
      }
    }
    const double code = code_scale(largest);
    std::vector<std::int32_t> multiplier, addend;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double unit = std::ldexp(1.0, kPictureShift) / (deviation[c] * code);
      multiplier.push_back(static_cast<std::int32_t>(std::llrint(rescale * unit)));
      addend.push_back(static_cast<std::int32_t>(std::llrint(-mean[c] * unit)));
    }
    const std::vector<std::size_t> channels = {mean.size()};
    emit(node, "normalise",
         {node.inputs[0],
          writer_.constant(
              make_tensor(node.name + ".multiplier", FileDtype::kI32, channels, multiplier)),
          writer_.constant(make_tensor(node.name + ".addend", FileDtype::kI32, channels, addend))},
         code, {{"shift", kPictureShift}, {"levels", levels}});
  }

  [[nodiscard]] double stream_scale(const NetworkNode& add) const {
    double largest = largest_.at(add.output);
    for (const std::string& input : add.inputs) largest = std::max(largest, largest_.at(input));
    const unsigned bits = std::min(kSumBits, unsigned{options_.datapath.residual_bits});
    return (largest > 0 ? largest : 1.0) * options_.headroom /
           static_cast<double>(hw::symmetric_range(bits).hi);
  }

  void convolution(const NetworkNode& node) {
    const std::vector<std::size_t>& weight = file_.constants().tensor(node.inputs[1]).shape;
    FloatLinear layer;
    layer.outputs = static_cast<std::uint32_t>(weight[0]);
    layer.inputs = static_cast<std::uint32_t>(weight[1] * weight[2] * weight[3]);
    layer.weight = file_.reals(node.inputs[1]);
    layer.bias = node.inputs.size() > 2 ? file_.reals(node.inputs[2])
                                        : std::vector<double>(layer.outputs, 0.0);
    std::string type = "s8";
    const unsigned bits = bits_after(node);
    double out = range_of(node.output) / static_cast<double>(hw::symmetric_range(bits).hi);
    if (const NetworkNode* const sum = only_sum(node.output)) {
      type = "s16";
      out = stream_scale(*sum);
    } else if (is_result(node)) {
      type = "s32";
      out = range_of(node.output) / static_cast<double>(hw::symmetric_range(kSumBits).hi);
    }
    const bool at_an_end = std::exchange(is_first_, false) || is_result(node);
    const IntegerLinear of = layers_.linear(node.name, layer, scale(node), {{layer.outputs, out}},
                                            at_an_end ? kWeightBits : options_.weight_bits);
    std::vector<std::int32_t> multipliers;
    std::vector<std::int8_t> shifts;
    for (const hw::Dyadic& channel : of.factor) {
      multipliers.push_back(channel.multiplier);
      shifts.push_back(channel.shift);
    }
    ordered_json attributes = window(node);
    if (bits != kWeightBits) attributes["bits"] = bits;
    const std::vector<std::size_t> outputs = {of.outputs};
    const auto constant = [&](const char* role, TensorData tensor) {
      tensor.name = node.name + "." + role;
      return writer_.constant(std::move(tensor));
    };
    emit(node, "convolution",
         {node.inputs[0],
          constant("weight", make_tensor("", FileDtype::kI8, weight, of.weight.get())),
          constant("bias", make_tensor("", FileDtype::kI32, outputs, of.bias)),
          constant("multiplier", make_tensor("", FileDtype::kI32, outputs, multipliers)),
          constant("shift", make_tensor("", FileDtype::kI8, outputs, shifts))},
         out, attributes, type);
  }

  void add(const NetworkNode& node) {
    const double stream = stream_scale(node);
    std::string branch = branch_of(node);
    const std::string identity = branch == node.inputs[1] ? node.inputs[0] : node.inputs[1];
    const double identity_scale = scales_.at(identity);
    if (only_sum(branch) == nullptr || !file_.producer(branch)->is("convolution")) {
      const double from = scales_.at(branch);
      branch =
          writer_.node(node.name + ".wide", "requantise", {branch}, {"s16", shape(node), stream},
                       {{"factor", factor(node.name, from / stream)}});
    }
    const std::string sum =
        writer_.node(node.name + ".sum", "add", {identity, branch}, {"s16", shape(node), stream},
                     {{"factor", factor(node.name, identity_scale / stream)}});
    const double out = range_of(node.output) / kLargestCode;
    emit(node, "requantise", {sum}, out, {{"factor", factor(node.name, stream / out)}});
  }

  /// Quotients with as many bits as s16 has room for in the calibration set, then 8 bits.
  void divide(const NetworkNode& node) {
    const double unit = scale(node) / scale(node, 1);  // of the quotient of two codes
    const double room = static_cast<double>(hw::symmetric_range(kQuotientBits).hi);
    const double bits = std::floor(std::log2(room * unit / range_of(node.output)));
    const auto shift =
        static_cast<int>(std::clamp(bits, 0.0, static_cast<double>(hw::kMaxDivideShift)));
    const double wide = std::ldexp(unit, -shift), out = range_of(node.output) / kLargestCode;
    const std::string quotient =
        writer_.node(node.name + ".wide", "divide", {node.inputs[0], node.inputs[1]},
                     {"s16", shape(node), wide}, {{"shift", shift}});
    emit(node, "requantise", {quotient}, out, {{"factor", factor(node.name, wide / out)}});
  }

  const NetworkFile& file_;
  const QuantiserOptions& options_;
  const LayerQuantiser layers_;
  bool is_first_ = true;  ///< no layer has been made
  NetworkWriter writer_;
  std::map<std::string, double> largest_;  ///< magnitude of each value in the calibration set
  std::map<std::string, std::vector<const NetworkNode*>> readers_;
  std::map<std::string, double> scales_;
};

}  // namespace

QuantisedOperators quantise(const FloatOperators& network, const Dataset& calibration,
                            const std::string& name, const QuantiserOptions& options) {
  return OperatorQuantiser(network, calibration, name, options).run();
}

}  // namespace systole::model

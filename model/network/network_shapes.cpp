#include "model/network/network_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include "hw/number/weight_groups.h"
#include "hw/program/window.h"

namespace systole::model {
namespace {

/// The operands of one node.
class Operands {
 public:
  Operands(const NetworkNode& node, const std::vector<NetworkShape>& shapes,
           const std::vector<OpInput>& inputs, const std::function<void(const std::string&)>& fail)
      : node_(node), shapes_(shapes), inputs_(inputs), fail_(fail) {}

  [[noreturn]] void fail(const std::string& what) const {
    fail_(what);
    throw std::logic_error("result_shape: the failure returned");
  }

  [[nodiscard]] const NetworkShape& operator[](std::size_t index) const { return shapes_[index]; }
  [[nodiscard]] std::size_t count() const { return shapes_.size(); }
  [[nodiscard]] std::int64_t number(const char* attribute) const {
    return node_.attributes.at(attribute).get<std::int64_t>();
  }

  [[nodiscard]] std::int64_t number_or(const char* attribute, std::int64_t otherwise) const {
    return has(attribute) ? number(attribute) : otherwise;
  }

  [[nodiscard]] bool has(const char* attribute) const {
    return node_.attributes.contains(attribute);
  }
  [[nodiscard]] const nlohmann::json& attribute(const char* name) const {
    return node_.attributes.at(name);
  }
  [[nodiscard]] hw::Padding padding() const { return padding_of(node_); }

  [[nodiscard]] bool flag(const char* attribute) const {
    return node_.attributes.at(attribute).get<bool>();
  }

  [[noreturn]] void mismatch(std::size_t index, const std::string& expected) const {
    fail(fmt::format("input '{}' ({}): shape is {}, expected {}", inputs_[index].name,
                     node_.inputs[index], network_shape_text(shapes_[index]), expected));
  }
  void require(std::size_t index, const NetworkShape& expected) const {
    if (shapes_[index] != expected) mismatch(index, network_shape_text(expected));
  }
  /// Rows and columns of an operand; of an activation that stays a matrix.
  const NetworkShape& matrix(std::size_t index) const {
    if (shapes_[index].size() != 2 || shapes_[index][1] == kTokens) {
      mismatch(index, "rows and columns");
    }
    return shapes_[index];
  }
  /// An activation of any kind: rows and columns, or a picture.
  const NetworkShape& values(std::size_t index) const {
    return shapes_[index].size() == 3 ? picture(index) : matrix(index);
  }
  /// Channels, height and width.
  const NetworkShape& picture(std::size_t index) const {
    const NetworkShape& shape = shapes_[index];
    if (shape.size() != 3 || std::count(shape.begin(), shape.end(), kTokens) != 0) {
      mismatch(index, "[channels, height, width]");
    }
    return shape;
  }
  /// All operands from `first` on, if there are as many, are lists of `length`.
  void require_lists(std::size_t first, std::int64_t length) const {
    for (std::size_t i = first; i < shapes_.size(); ++i) require(i, {length});
  }

 private:
  const NetworkNode& node_;
  const std::vector<NetworkShape>& shapes_;
  const std::vector<OpInput>& inputs_;
  const std::function<void(const std::string&)>& fail_;
};

NetworkShape embedding_shape(const Operands& in) {
  if (in[0].size() != 1) in.mismatch(0, "one dimension of ids");
  return {in[0][0], in.matrix(1)[1]};
}

NetworkShape scaled_embedding_shape(const Operands& in) {
  const NetworkShape shape = embedding_shape(in);
  in.require_lists(2, in[1][0]);
  return shape;
}

NetworkShape positions_shape(const Operands& in) {
  if (in.matrix(0)[0] <= in.number("offset")) {
    in.mismatch(0, fmt::format("more rows than the offset {}", in.number("offset")));
  }
  return {kTokens, in[0][1]};
}

NetworkShape sum_shape(const Operands& in) {
  in.require(1, in.values(0));
  return in[0];
}

NetworkShape table_shape(const Operands& in) {
  in.require(1, in.matrix(0));
  return in[0];
}

NetworkShape rms_norm_shape(const Operands& in) {
  const std::int64_t heads = in.number_or("heads", 1);
  if (in.matrix(0)[1] % heads != 0) {
    in.mismatch(0, fmt::format("columns that {} heads divide", heads));
  }
  in.require_lists(1, in[0][1] / heads);
  return in[0];
}

NetworkShape norm_shape(const Operands& in) {
  in.require_lists(1, in.matrix(0)[1]);
  return in[0];
}

NetworkShape linear_shape(const Operands& in) {
  if (in.matrix(1)[1] != in.matrix(0)[1]) {
    in.mismatch(1, fmt::format("{} columns, as its input has", in[0][1]));
  }
  constexpr std::size_t kGroupScale = 5, kGroupMinimum = 6;
  if (in.count() > kGroupScale) {
    if (in.has("format") != (in.count() == kGroupMinimum)) {
      in.fail("input 'group_minimum': expected beside group_scale, or a format of MX");
    }
    if (in[1][1] % hw::kGroupWeights != 0) {
      in.mismatch(1, fmt::format("groups of {} columns", hw::kGroupWeights));
    }
    const NetworkShape groups = {in[1][0], in[1][1] / hw::kGroupWeights};
    in.require(kGroupScale, groups);
    if (in.count() > kGroupMinimum) in.require(kGroupMinimum, groups);
  } else if (in.has("format")) {
    in.fail("attribute 'format': of weights in groups, expected input 'group_scale'");
  }
  for (std::size_t i = 2; i < std::min(in.count(), kGroupScale); ++i) in.require(i, {in[1][0]});
  return {in[0][0], in[1][0]};
}

NetworkShape same_shape(const Operands& in) { return in.values(0); }

NetworkShape route_shape(const Operands& in) {
  if (in.matrix(0)[1] < in.number("active")) {
    in.mismatch(0, fmt::format("{} columns at the least", in.number("active")));
  }
  return in[0];
}

NetworkShape weigh_shape(const Operands& in) {
  if (in.matrix(1)[0] != in.matrix(0)[0]) {
    in.mismatch(1, "as many rows as its other input has");
  }
  if (in[1][1] <= in.number("expert")) {
    in.mismatch(1, fmt::format("more columns than the expert {}", in.number("expert")));
  }
  return in[0];
}

NetworkShape attention_shape(const Operands& in) {
  const std::int64_t heads = in.number("heads");
  if (in.matrix(0)[1] % heads != 0) {
    in.mismatch(0, fmt::format("columns that {} heads divide", heads));
  }
  const std::int64_t kv_heads = in.number_or("kv_heads", heads);
  if (heads % kv_heads != 0) {
    in.fail(fmt::format("attribute 'kv_heads': {}, expected a divisor of {}", kv_heads, heads));
  }
  if (in.has("window") && !in.flag("causal")) {
    in.fail("attribute 'window': expected of a causal attention alone");
  }
  // Keys and values may be of another text than the queries.
  const bool masked = in.count() == 4 || in.flag("causal");
  const NetworkShape shared = {masked ? in[0][0] : in.matrix(1)[0], in[0][1] / heads * kv_heads};
  in.require(1, shared);
  in.require(2, shared);
  if (in.count() == 4) {
    constexpr std::int64_t kBits = 8;
    if (in[0][0] == kTokens) in.fail("input 'keep': a mask needs a fixed number of tokens");
    in.require(3, {heads, in[0][0], (in[0][0] + kBits - 1) / kBits});
  }
  return in[0];
}

NetworkShape rope_shape(const Operands& in) {
  if (in.matrix(0)[1] % (2 * in.number("heads")) != 0) {
    in.mismatch(0, fmt::format("columns for {} heads of an even width", in.number("heads")));
  }
  const std::int64_t pairs = in[0][1] / in.number("heads") / 2;
  if (in.has("frequencies") &&
      in.attribute("frequencies").size() != static_cast<std::size_t>(pairs)) {
    in.fail(
        fmt::format("attribute 'frequencies': found {}, expected {}, one for each pair of a head",
                    in.attribute("frequencies").size(), pairs));
  }
  return in[0];
}

NetworkShape head_mix_shape(const Operands& in) {
  if (in.matrix(0)[1] % in.matrix(1)[1] != 0) {
    in.mismatch(1, fmt::format("columns that divide those of its input, {}", in[0][1]));
  }
  in.require_lists(2, in[1][0]);
  return {in[0][0], in[0][1] / in[1][1] * in[1][0]};
}

NetworkShape picture_shape(const Operands& in) {
  if (in[0].size() != 3 || in[0][1] != in[0][2] || in[0][0] == kTokens || in[0][1] == kTokens) {
    in.mismatch(0, "[channels, side, side]");
  }
  return in[0];
}

NetworkShape normalise_shape(const Operands& in) {
  const NetworkShape& picture = picture_shape(in);
  in.require_lists(1, picture[0]);
  return picture;
}

/// Of what a window gathers in a picture: `outputs` channels for each of its places.
NetworkShape window_shape(const Operands& in, std::int64_t outputs, std::int64_t rows,
                          std::int64_t cols) {
  const NetworkShape& picture = in.picture(0);
  const hw::Padding padding = in.padding();
  const std::int64_t stride = in.number_or("stride", 1);
  if (picture[1] > hw::kMaxPictureSide || picture[2] > hw::kMaxPictureSide ||
      picture[0] > hw::kMaxPictureChannels) {
    in.mismatch(0, fmt::format("at most {} channels and sides of {} pixels",
                               hw::kMaxPictureChannels, hw::kMaxPictureSide));
  }
  const std::int64_t height = picture[1] + padding.rows(), width = picture[2] + padding.cols();
  if (rows > height || cols > width) {
    in.mismatch(0, fmt::format("a picture that holds a window of {} x {} pixels", rows, cols));
  }
  return {outputs, (height - rows) / stride + 1, (width - cols) / stride + 1};
}

NetworkShape convolution_shape(const Operands& in) {
  const std::int64_t groups = in.number_or("groups", 1);
  const NetworkShape& picture = in.picture(0);
  const NetworkShape& weight = in[1];
  if (picture[0] % groups != 0) {
    in.mismatch(0, fmt::format("channels that {} groups divide", groups));
  }
  const bool fits = weight.size() == 4 && weight[1] == picture[0] / groups &&
                    weight[0] % groups == 0 && weight[2] <= hw::kMaxWindowSide &&
                    weight[3] <= hw::kMaxWindowSide;
  if (!fits) {
    in.mismatch(1, fmt::format("[outputs that {} groups divide, {}, rows, cols], sides of at most "
                               "{}",
                               groups, picture[0] / groups, hw::kMaxWindowSide));
  }
  constexpr std::int64_t kMostWeights = 1 << 16;  // of a sum that stays within int32
  if (weight[1] * weight[2] * weight[3] > kMostWeights) {
    in.mismatch(1, fmt::format("at most {} weights of an output", kMostWeights));
  }
  in.require_lists(2, weight[0]);
  return window_shape(in, weight[0], weight[2], weight[3]);
}

NetworkShape pool_shape(const Operands& in) {
  const std::int64_t rows = in.number("rows"), cols = in.number("cols");
  const hw::Padding padding = in.padding();
  if (std::max(padding.top, padding.bottom) >= rows ||
      std::max(padding.left, padding.right) >= cols) {
    in.fail(fmt::format("attribute 'padding': {}, expected less than a side of the window",
                        in.attribute("padding").dump()));
  }
  return window_shape(in, in.picture(0)[0], rows, cols);
}

NetworkShape pad_shape(const Operands& in) {
  const hw::Padding padding = in.padding();
  if (padding == hw::Padding{})
    in.fail("attribute 'padding': 0, expected zeros on a side at least");
  const NetworkShape& picture = in.picture(0);
  return {picture[0], picture[1] + padding.rows(), picture[2] + padding.cols()};
}

NetworkShape patches_shape(const Operands& in) {
  const NetworkShape& picture = picture_shape(in);
  const std::int64_t patch = in.number("patch"), up = in.number("upsample");
  if (picture[1] > (std::int64_t{1} << 16) || picture[1] * up % patch != 0) {
    in.mismatch(0, fmt::format("a side that, times {}, is a multiple of the patch, {}", up, patch));
  }
  const std::int64_t side = picture[1] * up / patch;
  return {side * side, picture[0] * patch * patch};
}

NetworkShape prepend_shape(const Operands& in) {
  if (in.matrix(0)[0] == kTokens) in.mismatch(0, "a fixed number of rows");
  in.require(1, {1, in[0][1]});
  return {in[0][0] + 1, in[0][1]};
}

NetworkShape row_shape(const Operands& in) {
  const std::int64_t rows = in.matrix(0)[0];
  if (rows != kTokens && in.number("row") >= rows) {
    in.fail(fmt::format("attribute 'row': {}, expected less than {}", in.number("row"), rows));
  }
  return {1, in[0][1]};
}

using Rule = NetworkShape (*)(const Operands&);

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> rules = {
      {"embedding", embedding_shape},
      {"positions", positions_shape},
      {"add", sum_shape},
      {"add_table", table_shape},
      {"layer_norm", norm_shape},
      {"linear", linear_shape},
      {"gelu", same_shape},
      {"attention", attention_shape},
      {"head_mix", head_mix_shape},
      {"normalise", normalise_shape},
      {"patches", patches_shape},
      {"prepend", prepend_shape},
      {"select_row", row_shape},
      {"rms_norm", rms_norm_shape},
      {"quantise_rows", same_shape},
      {"silu", same_shape},
      {"tanh", same_shape},
      {"relu", same_shape},
      {"multiply", sum_shape},
      {"divide", sum_shape},
      {"rope", rope_shape},
      {"convolution", convolution_shape},
      {"max_pool", pool_shape},
      {"average_pool", pool_shape},
      {"pad", pad_shape},
      {"requantise", same_shape},
      {"scale", same_shape},
      {"route", route_shape},
      {"weigh", weigh_shape},
      {"scaled_embedding", scaled_embedding_shape}};
  return rules;
}

}  // namespace

hw::Padding padding_of(const NetworkNode& node) {
  if (!node.attributes.contains("padding")) return {};
  const nlohmann::json& value = node.attributes.at("padding");
  if (!value.is_array()) return hw::Padding::on_all_sides(value.get<std::uint8_t>());
  const auto side = [&](std::size_t i) { return value.at(i).get<std::uint8_t>(); };
  return {side(0), side(1), side(2), side(3)};
}

NetworkShape result_shape(const NetworkNode& node, const std::vector<NetworkShape>& operands,
                          const std::function<void(const std::string&)>& fail) {
  // Both forms of an operator have the same names in the same places, as far as both have them.
  const auto& inputs = node.op->integer.inputs.size() > node.op->real.inputs.size()
                           ? node.op->integer.inputs
                           : node.op->real.inputs;
  return rules().at(node.op->name)(Operands(node, operands, inputs, fail));
}

std::uint64_t node_macs(const NetworkNode& node, const std::vector<NetworkShape>& operands,
                        const NetworkShape& result) {
  const auto product = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) *
           static_cast<std::uint64_t>(c);
  };
  if (node.is("linear")) return product(result[0], result[1], operands[0][1]);
  if (node.is("attention")) return 2 * product(result[0], operands[1][0], result[1]);
  if (node.is("convolution")) {
    const NetworkShape& weight = operands[1];
    return product(result[0], result[1], result[2]) * product(weight[1], weight[2], weight[3]);
  }
  // As across_heads() (model/integer/head_mix.h) makes it: a matrix that is mostly zeros.
  if (node.is("head_mix")) return product(result[0], result[1], operands[0][1]);
  return 0;
}

}  // namespace systole::model

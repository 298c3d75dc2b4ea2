#include "model/build/operator_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/reference.h"
#include "model/metadata/datapath_metadata.h"
#include "model/network/network_writer.h"
#include "support/random/random_graph.h"

namespace systole::model {
namespace {

using test::between;
using test::Random;

/// A picture, plane after plane.
struct Plain {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::int64_t> values;

  [[nodiscard]] NetworkShape shape() const { return {channels, height, width}; }
  /// Zero outside of the picture.
  [[nodiscard]] std::int64_t at(std::int64_t c, std::int64_t y, std::int64_t x) const {
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? values[static_cast<std::size_t>((c * height + y) * width + x)] : 0;
  }
};

/// Half up.
std::int64_t scaled(std::int64_t value, hw::Dyadic factor, std::int64_t largest) {
  const std::int64_t half = factor.shift == 0 ? 0 : std::int64_t{1} << (factor.shift - 1);
  const std::int64_t quotient = (value * factor.multiplier + half) >> factor.shift;
  return std::clamp(quotient, -largest, largest);
}

std::vector<std::size_t> sizes(const NetworkShape& shape) { return {shape.begin(), shape.end()}; }

/// Writes random operators, and computes each by its definition.
class RandomOperators {
 public:
  explicit RandomOperators(std::uint64_t seed) : random_(seed), writer_("random", "test") {
    hw::Machine::Datapath datapath;
    writer_.set_datapath(datapath_metadata(datapath));
    at_.channels = between(random_, 1, 6);
    at_.height = between(random_, 4, 9);
    at_.width = between(random_, 4, 9);
    input = codes(at_.channels * at_.height * at_.width);
    at_.values = input.values;
    writer_.input("x", {"s8", at_.shape()});
    for (int i = 0; i < 5; ++i) append("n" + std::to_string(i));
  }

  [[nodiscard]] NetworkFile file() { return writer_.file("random.safetensors", name_); }
  [[nodiscard]] const Plain& result() const { return at_; }

  Plain input;  ///< its values alone

 private:
  Plain codes(std::int64_t count) {
    Plain made;
    for (const std::int32_t value :
         test::random_values(random_, static_cast<std::size_t>(count), 127)) {
      made.values.push_back(value);
    }
    return made;
  }
  hw::Dyadic factor(int shift) {
    return {static_cast<std::int32_t>(between(random_, 20000, 32000)),
            static_cast<std::int8_t>(shift)};
  }
  void node(const std::string& name, const char* op, std::vector<std::string> inputs, Plain result,
            const nlohmann::ordered_json& attributes, const std::string& type = "s8") {
    writer_.node(name, op, inputs, {type, result.shape()}, attributes);
    at_ = std::move(result);
    name_ = name;
  }

  void append(const std::string& name) {
    switch (between(random_, 0, 6)) {
      case 0:
        return pool(name, true);
      case 1:
        return pool(name, false);
      case 2:
        return pad(name);
      case 3:
        return rectify(name);
      case 4:
        return residual(name);
      case 5:
        return divide(name);
      default:
        return convolve(name);
    }
  }

  struct Place {
    std::int64_t rows, cols, stride;
    std::int64_t top, left, bottom, right;  ///< padding
  };
  /// Padding of at most so many rows and columns, in half of all the same on all sides.
  Place padded(std::int64_t rows, std::int64_t cols, Place made) {
    const auto side = [&](std::int64_t most) -> std::int64_t {
      return between(random_, 0, static_cast<std::uint32_t>(most));
    };
    if (between(random_, 0, 1) == 0) {
      made.top = made.left = made.bottom = made.right = side(std::min(rows, cols));
    } else {
      made.top = side(rows);
      made.left = side(cols);
      made.bottom = side(rows);
      made.right = side(cols);
    }
    return made;
  }
  static nlohmann::ordered_json padding_of(const Place& place) {
    const bool same =
        place.top == place.left && place.top == place.bottom && place.top == place.right;
    if (same) return place.top;
    return {place.top, place.left, place.bottom, place.right};
  }
  Place place(bool narrow) {
    const std::int64_t most = std::min<std::int64_t>({4, at_.height, at_.width});
    Place made{between(random_, 1, static_cast<std::uint32_t>(most)),
               between(random_, 1, static_cast<std::uint32_t>(most)),
               between(random_, 1, 3),
               0,
               0,
               0,
               0};
    return narrow ? padded(made.rows - 1, made.cols - 1, made) : padded(3, 3, made);
  }
  /// of(c, top, left) for each place of the window.
  template <typename Of>
  Plain through(const Place& place, std::int64_t channels, Of of) const {
    Plain result;
    result.channels = channels;
    result.height = (at_.height + place.top + place.bottom - place.rows) / place.stride + 1;
    result.width = (at_.width + place.left + place.right - place.cols) / place.stride + 1;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t y = 0; y < result.height; ++y) {
        for (std::int64_t x = 0; x < result.width; ++x) {
          result.values.push_back(
              of(c, y * place.stride - place.top, x * place.stride - place.left));
        }
      }
    }
    return result;
  }
  static nlohmann::ordered_json window(const Place& place, bool sides) {
    nlohmann::ordered_json attributes = {{"stride", place.stride}, {"padding", padding_of(place)}};
    if (sides) {
      attributes["rows"] = place.rows;
      attributes["cols"] = place.cols;
    } else if (place.stride == 1) {
      attributes.erase("stride");  // as it is where it is left out
    }
    return attributes;
  }

  void pool(const std::string& name, bool maximum) {
    const Place where = place(true);
    const hw::Dyadic mean = factor(17);
    Plain result = through(where, at_.channels, [&](auto c, auto top, auto left) {
      std::int64_t largest = std::numeric_limits<std::int64_t>::min(), sum = 0;
      for (std::int64_t y = top; y < top + where.rows; ++y) {
        for (std::int64_t x = left; x < left + where.cols; ++x) {
          sum += at_.at(c, y, x);
          const bool inside = y >= 0 && y < at_.height && x >= 0 && x < at_.width;
          if (inside) largest = std::max(largest, at_.at(c, y, x));
        }
      }
      return maximum ? largest : scaled(sum, mean, 127);
    });
    nlohmann::ordered_json attributes = window(where, true);
    if (!maximum) attributes["factor"] = factor_json(mean);
    node(name, maximum ? "max_pool" : "average_pool", {name_}, std::move(result), attributes);
  }

  void pad(const std::string& name) {
    Place where = padded(3, 3, {1, 1, 1, 0, 0, 0, 0});
    where.bottom += where.top + where.left + where.bottom + where.right == 0 ? 1 : 0;
    Plain result =
        through(where, at_.channels, [&](auto c, auto y, auto x) { return at_.at(c, y, x); });
    node(name, "pad", {name_}, std::move(result), {{"padding", padding_of(where)}});
  }

  void rectify(const std::string& name) {
    Plain result = at_;
    for (std::int64_t& value : result.values) value = std::max<std::int64_t>(value, 0);
    node(name, "relu", {name_}, std::move(result), nlohmann::ordered_json::object());
  }

  struct Layer {
    std::vector<std::int8_t> weight;
    std::vector<std::int32_t> bias;
    std::vector<hw::Dyadic> factors;
  };
  /// The constants NAME.* of a convolution, in the order of its operands.
  std::vector<std::string> constants(const std::string& name, const Layer& layer,
                                     const NetworkShape& shape) {
    std::vector<std::int32_t> multipliers;
    std::vector<std::int8_t> shifts;
    for (const hw::Dyadic& of : layer.factors) {
      multipliers.push_back(of.multiplier);
      shifts.push_back(of.shift);
    }
    const std::vector<std::size_t> list = {layer.bias.size()};
    return {name_,
            writer_.constant(make_tensor(name + ".w", FileDtype::kI8, sizes(shape), layer.weight)),
            writer_.constant(make_tensor(name + ".b", FileDtype::kI32, list, layer.bias)),
            writer_.constant(make_tensor(name + ".m", FileDtype::kI32, list, multipliers)),
            writer_.constant(make_tensor(name + ".s", FileDtype::kI8, list, shifts))};
  }

  void convolve(const std::string& name) {
    const Place where = place(false);
    const std::int64_t groups = between(random_, 0, 1) == 0 ? at_.channels : 1;
    const std::int64_t ins = at_.channels / groups, outs = between(random_, 1, 4);
    Layer layer;
    const Plain weights = codes(groups * outs * ins * where.rows * where.cols);
    layer.weight.assign(weights.values.begin(), weights.values.end());
    layer.bias = test::random_values(random_, static_cast<std::size_t>(groups * outs), 9000);
    for (std::int64_t o = 0; o < groups * outs; ++o) layer.factors.push_back(factor(23));
    const unsigned bits = between(random_, 0, 3) == 0 ? between(random_, 2, 7) : 8;
    Plain result = through(where, groups * outs, [&](auto o, auto top, auto left) {
      std::int64_t sum = layer.bias[static_cast<std::size_t>(o)];
      auto weight = weights.values.begin() + o * ins * where.rows * where.cols;
      for (std::int64_t c = o / outs * ins; c < (o / outs + 1) * ins; ++c) {
        for (std::int64_t y = top; y < top + where.rows; ++y) {
          for (std::int64_t x = left; x < left + where.cols; ++x)
            sum += *weight++ * at_.at(c, y, x);
        }
      }
      return scaled(sum, layer.factors[static_cast<std::size_t>(o)], (1 << (bits - 1)) - 1);
    });
    nlohmann::ordered_json attributes = window(where, false);
    if (bits != 8) attributes["bits"] = bits;
    if (groups != 1) attributes["groups"] = groups;
    node(name, "convolution", constants(name, layer, {groups * outs, ins, where.rows, where.cols}),
         std::move(result), attributes);
    // A ReLU after the groups of a convolution is a part of each.
    if (between(random_, 0, 1) == 0) rectify(name + ".relu");
  }

  /// The sum of the value and its requantisation, and its codes again.
  void residual(const std::string& name) {
    const std::string from = name_;
    const Plain before = at_;
    const hw::Dyadic branch = factor(13), identity = factor(12), back = factor(17);
    Plain wide = before, sum = before, codes = before;
    const unsigned bits = between(random_, 0, 3) == 0 ? between(random_, 2, 7) : 8;
    for (std::size_t i = 0; i < before.values.size(); ++i) {
      wide.values[i] = scaled(before.values[i], branch, 32767);
      sum.values[i] = std::clamp<std::int64_t>(
          wide.values[i] + scaled(before.values[i], identity, (1 << 30) - 1), -32767, 32767);
      codes.values[i] = scaled(sum.values[i], back, (1 << (bits - 1)) - 1);
    }
    node(name + ".wide", "requantise", {from}, std::move(wide), {{"factor", factor_json(branch)}},
         "s16");
    node(name + ".sum", "add", {from, name_}, std::move(sum), {{"factor", factor_json(identity)}},
         "s16");
    nlohmann::ordered_json attributes = {{"factor", factor_json(back)}};
    if (bits != 8) attributes["bits"] = bits;
    node(name, "requantise", {name_}, std::move(codes), attributes);
  }

  /// The value over another of its channels' order, and codes of the quotients.
  void divide(const std::string& name) {
    const std::string a = name_;
    const Plain before = at_;
    rectify(name + ".divisor");  // many zeros, and the dividend's own codes
    const auto shift = static_cast<int>(between(random_, 0, 14));
    const hw::Dyadic back = factor(22);
    Plain wide = before, codes = before;
    for (std::size_t i = 0; i < before.values.size(); ++i) {
      const double x = static_cast<double>(before.values[i]),
                   y = static_cast<double>(at_.values[i]);
      // 127 * 2^14 has 21 bits, so that a tie of the quotient is one of its double.
      const double rounded = y == 0 ? x * 1e9 : std::floor(std::ldexp(x, shift) / y + 0.5);
      wide.values[i] = static_cast<std::int64_t>(std::clamp(rounded, -32767.0, 32767.0));
      codes.values[i] = scaled(wide.values[i], back, 127);
    }
    node(name + ".wide", "divide", {a, name_}, std::move(wide), {{"shift", shift}}, "s16");
    node(name, "requantise", {name_}, std::move(codes), {{"factor", factor_json(back)}});
  }

  Random random_;
  NetworkWriter writer_;
  Plain at_;
  std::string name_ = "x";
};

/// From planes to a row for each pixel.
std::vector<std::int32_t> pixel_rows(const Plain& plain, std::int64_t channels) {
  const std::size_t pixels = plain.values.size() / static_cast<std::size_t>(channels);
  std::vector<std::int32_t> rows;
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      rows.push_back(static_cast<std::int32_t>(plain.values[c * pixels + p]));
    }
  }
  return rows;
}

TEST(OperatorGraph, ComputesWhatTheOperatorsMean) {
  for (std::uint64_t seed = 0; seed < 200 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomOperators operators(seed);
    const NetworkFile file = operators.file();
    const OperatorNetwork network = make_operator_network(file);
    Reference reference(network.graph);
    const Tensor& in = network.graph.tensors.front();
    reference.set_input("x", pixel_rows(operators.input, in.cols));
    reference.run();
    const Plain& expected = operators.result();
    for (const Tensor& tensor : network.graph.tensors) {
      if (tensor.kind != Tensor::Kind::kOutput) continue;
      EXPECT_EQ(reference.values(tensor.name), pixel_rows(expected, expected.channels));
    }
  }
}

TEST(OperatorGraph, TakesPicturesAsTheirNormaliseSays) {
  NetworkWriter writer("pictures", "test");
  writer.set_datapath(datapath_metadata({}));
  const std::string picture = writer.input("picture", {"u8", {2, 3, 3}});
  const std::string multiplier =
      writer.constant(make_tensor<std::int32_t>("m", FileDtype::kI32, {2}, {3, 5}));
  const std::string addend =
      writer.constant(make_tensor<std::int32_t>("a", FileDtype::kI32, {2}, {-40, 7}));
  const std::string codes = writer.node("codes", "normalise", {picture, multiplier, addend},
                                        {"s8", {2, 3, 3}}, {{"shift", 2}, {"levels", 200}});
  const NetworkFile file = writer.file("p", writer.node("out", "relu", {codes}, {"s8", {2, 3, 3}}));
  const OperatorNetwork network = make_operator_network(file);
  ASSERT_TRUE(network.pictures);
  EXPECT_EQ(network.pictures->format.levels, 200U);
  EXPECT_EQ(network.pictures->format.channels, 2U);
  EXPECT_EQ(network.graph.tensors.front().type, hw::DType::kS8);
  Image image{2, 3, 3, {}};
  for (int i = 0; i < 18; ++i) image.values.push_back(11 * i);
  const std::vector<std::uint8_t> bytes = network.pictures->bytes(image);
  for (int p = 0; p < 9; ++p) {
    const auto rounded = [](int value) {
      return std::clamp(static_cast<int>(std::floor(value / 4.0 + 0.5)), -127, 127);
    };
    const auto at = static_cast<std::size_t>(2 * p);
    EXPECT_EQ(static_cast<std::int8_t>(bytes[at]), rounded(11 * p * 3 - 40));
    EXPECT_EQ(static_cast<std::int8_t>(bytes[at + 1]), rounded(11 * (9 + p) * 5 + 7));
  }
}

}  // namespace
}  // namespace systole::model

#include "model/quantise/operator_quantiser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/build/operator_graph.h"
#include "model/graph/reference.h"
#include "support/input_error.h"
#include "support/random/random_machine.h"
#include "testbench/network/tensors.h"

namespace systole::model {
namespace {

using test::between;
using test::Random;

constexpr std::int64_t kSide = 10;

/// Real numbers, as a converter writes them.
class RealNetwork {
 public:
  explicit RealNetwork(std::uint64_t seed) : random_(seed), writer_("real", "test") {
    const std::string picture = writer_.input("picture", {"u8", {2, kSide, kSide}});
    at_ = writer_.node("normal", "normalise", {picture}, {"f32", {2, kSide, kSide}},
                       {{"rescale", 1.0 / 255}, {"mean", {0.4, 0.6}}, {"deviation", {0.3, 0.2}}});
  }

  double real() { return static_cast<double>(between(random_, 0, 2000)) / 1000.0 - 1.0; }
  std::string convolve(const std::string& name, std::int64_t outputs, std::int64_t inputs,
                       std::int64_t side, std::int64_t size,
                       const nlohmann::ordered_json& attributes) {
    std::vector<double> weight(static_cast<std::size_t>(outputs * inputs * side * side));
    for (double& value : weight) value = real() / std::sqrt(static_cast<double>(inputs * side));
    std::vector<double> bias(static_cast<std::size_t>(outputs));
    for (double& value : bias) value = 0.2 * real();
    const std::string w =
        writer_.reals(name + ".w",
                      {static_cast<std::size_t>(outputs), static_cast<std::size_t>(inputs),
                       static_cast<std::size_t>(side), static_cast<std::size_t>(side)},
                      weight);
    const std::string b = writer_.reals(name + ".b", {static_cast<std::size_t>(outputs)}, bias);
    return at_ = writer_.node(name, "convolution", {at_, w, b}, {"f32", {outputs, size, size}},
                              attributes);
  }
  std::string op(const std::string& name, const char* kind, std::vector<std::string> inputs,
                 const NetworkShape& shape,
                 const nlohmann::ordered_json& attributes = nlohmann::ordered_json::object()) {
    return at_ = writer_.node(name, kind, inputs, {"f32", shape}, attributes);
  }
  /// All operators, a residual whose branch is a convolution and one whose operands are none.
  NetworkFile whole() {
    convolve("c1", 6, 2, 3, kSide, {{"padding", 1}});
    const std::string r1 = op("r1", "relu", {at_}, {6, kSide, kSide});
    op("p1", "pad", {at_}, {6, kSide + 2, kSide + 2}, {{"padding", 1}});
    convolve("c2", 6, 1, 3, kSide, {{"groups", 6}});
    const std::string r2 = op("r2", "relu", {at_}, {6, kSide, kSide});
    convolve("c3", 6, 6, 1, kSide, nlohmann::ordered_json::object());
    const std::string s1 = op("s1", "add", {at_, r1}, {6, kSide, kSide});
    op("s2", "add", {s1, r2}, {6, kSide, kSide});
    op("r3", "relu", {at_}, {6, kSide, kSide});
    op("m", "max_pool", {at_}, {6, 5, 5}, {{"rows", 2}, {"cols", 2}, {"stride", 2}});
    op("a", "average_pool", {at_}, {6, 2, 2}, {{"rows", 3}, {"cols", 3}, {"stride", 2}});
    convolve("logits", 5, 6, 2, 1, nlohmann::ordered_json::object());
    return file();
  }
  /// A quotient of two convolutions, of which the divisor stays away from zero, and uneven padding.
  NetworkFile quotient() {
    convolve("c1", 4, 2, 3, kSide, {{"padding", {2, 0, 0, 2}}});
    const std::string a = op("a", "average_pool", {at_}, {4, kSide, kSide},
                             {{"rows", 3}, {"cols", 2}, {"padding", {0, 1, 2, 0}}});
    const std::string w = writer_.reals("d.w", {4, 4, 1, 1}, std::vector<double>(16, 0.05));
    const std::string b = writer_.reals("d.b", {4}, {1.5, 2, 2.5, -3});
    const std::string d = writer_.node("d", "convolution", {a, w, b}, {"f32", {4, kSide, kSide}});
    at_ = a;
    op("q", "divide", {a, d}, {4, kSide, kSide});
    convolve("logits", 5, 4, kSide, 1, nlohmann::ordered_json::object());
    return file();
  }
  /// Convolutions one after the other; a pooling reads the last but one.
  NetworkFile row() {
    convolve("c1", 6, 2, 3, kSide, {{"padding", 1}});
    op("r1", "relu", {at_}, {6, kSide, kSide});
    convolve("c2", 8, 6, 3, kSide, {{"padding", 1}});
    convolve("c3", 6, 8, 3, kSide, {{"padding", 1}});
    op("r3", "relu", {at_}, {6, kSide, kSide});
    convolve("c4", 6, 6, 1, kSide, nlohmann::ordered_json::object());
    op("m", "max_pool", {at_}, {6, 5, 5}, {{"rows", 2}, {"cols", 2}, {"stride", 2}});
    convolve("logits", 5, 6, 5, 1, nlohmann::ordered_json::object());
    return file();
  }
  NetworkFile file() { return writer_.file("real.safetensors", at_); }

 private:
  Random random_;
  NetworkWriter writer_;
  std::string at_;
};

Dataset pictures(std::uint64_t seed, std::size_t count) {
  Random random(seed);
  Dataset data{count, 2, kSide, kSide, {}, {}};
  for (std::size_t i = 0; i < count * 2 * kSide * kSide; ++i) {
    data.samples.push_back(static_cast<std::uint8_t>(between(random, 0, 255)));
  }
  return data;
}

/// Root mean square of what integers lose, relative to that of the real results.
double loss(const NetworkFile& real, const Dataset& calibration, const Dataset& data,
            const QuantiserOptions& options) {
  const FloatOperators network(real);
  QuantisedOperators made = quantise(network, calibration, "net", options);
  const NetworkFile file = made.writer.file("int8.safetensors", made.output);
  const OperatorNetwork integer = make_operator_network(file);
  Reference reference(integer.graph);
  double error = 0, power = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    const Image image = data.image(i);
    const FloatPicture expected = network.run(image).at(real.document().outputs.front());
    reference.set_input("picture",
                        testbench::widen(integer.pictures.value().bytes(image), hw::DType::kS8));
    reference.run();
    const Tensor& out = integer.graph.tensors[testbench::output_tensor(integer.graph)];
    const std::vector<std::int32_t> codes = reference.values(out.name);
    for (std::size_t k = 0; k < codes.size(); ++k) {
      error += std::pow(out.scale * codes[k] - expected.values[k], 2);
      power += std::pow(expected.values[k], 2);
    }
  }
  return std::sqrt(error / power);
}

TEST(OperatorQuantiser, StaysCloseToTheRealNetwork) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const NetworkFile real = RealNetwork(seed).whole();
    worst = std::max(worst, loss(real, pictures(seed, 12), pictures(seed + 100, 8), {}));
  }
  EXPECT_LT(worst, 0.08);
  EXPECT_GT(worst, 0.001) << "eight bits lose something";
}

TEST(OperatorQuantiser, DividesWhatStaysAwayFromZero) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const NetworkFile real = RealNetwork(seed).quotient();
    worst = std::max(worst, loss(real, pictures(seed, 12), pictures(seed + 100, 8), {}));
  }
  EXPECT_LT(worst, 0.08);
  EXPECT_GT(worst, 0.001);
}

TEST(OperatorQuantiser, RefusesADivisionByZeroInTheCalibrationSet) {
  RealNetwork network(1);
  network.op("q", "divide", {"normal", network.op("r", "relu", {"normal"}, {2, kSide, kSide})},
             {2, kSide, kSide});
  const NetworkFile real = network.file();
  const FloatOperators floats(real);
  expect_contains(
      input_error_of([&] { return quantise(floats, pictures(1, 3), "n").output; }),
      "value 'q': no finite number in calibration picture 0, expected no division by zero");
}

TEST(OperatorQuantiser, GivesARectifiedValueTheRangeOfItsRelu) {
  const NetworkFile real = RealNetwork(7).whole();
  const FloatOperators network(real);
  QuantisedOperators made = quantise(network, pictures(1, 6), "net");
  const NetworkFile file = made.writer.file("n", made.output);
  EXPECT_EQ(file.scale_of("c1"), file.scale_of("r1"));
  double largest = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const FloatPicture rectified = network.run(pictures(1, 6).image(i)).at("r1");
    for (const double value : rectified.values) largest = std::max(largest, value);
  }
  EXPECT_NEAR(127 * file.scale_of("r1"), largest, 1e-9);
  EXPECT_EQ(file.document().tensors.at("c3").type, "s16") << "as the sum that alone reads it";
  EXPECT_EQ(file.document().tensors.at("logits").type, "s32");
}

// Between convolutions by int4 weights, of which the first and the last are none.
TEST(OperatorQuantiser, GivesInt4ActivationsToWhatInt4WeightsAloneRead) {
  QuantiserOptions weights, both;
  weights.weight_bits = both.weight_bits = kInt4WeightBits;
  both.activation_bits = kInt4WeightBits;
  double of_weights = 0, of_both = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const NetworkFile real = RealNetwork(seed).row();
    QuantisedOperators made = quantise(FloatOperators(real), pictures(seed, 12), "net", both);
    const NetworkFile file = made.writer.file("int8.safetensors", made.output);
    const OperatorNetwork integer = make_operator_network(file);
    Reference reference(integer.graph);
    reference.set_input("picture",
                        testbench::widen(integer.pictures.value().bytes(pictures(seed, 1).image(0)),
                                         hw::DType::kS8));
    reference.run();
    const std::vector<std::string> expected = {"c1.requantise", "r1", "c2.requantise",
                                               "c3.requantise", "r3"};
    std::vector<std::string> found;
    for (const Tensor& tensor : integer.graph.tensors) {
      if (!tensor.int4 || tensor.kind == Tensor::Kind::kConstant) continue;
      found.push_back(tensor.name);
      std::int32_t largest = 0;
      for (const std::int32_t code : reference.values(tensor.name)) {
        ASSERT_LE(std::abs(code), 7) << tensor.name;
        largest = std::max(largest, std::abs(code));
      }
      EXPECT_GE(largest, 3) << tensor.name << " uses its codes";
    }
    EXPECT_EQ(found, expected);
    of_weights = std::max(of_weights, loss(real, pictures(seed, 12), pictures(9, 8), weights));
    of_both = std::max(of_both, loss(real, pictures(seed, 12), pictures(9, 8), both));
  }
  RecordProperty("weights", std::to_string(of_weights));
  RecordProperty("both", std::to_string(of_both));
  EXPECT_GT(of_both, of_weights);
  EXPECT_LT(of_both, 0.6);
}

TEST(OperatorQuantiser, RefusesWhatIsNoConvolutionalNetwork) {
  const auto refuse = [](auto change, const std::string& part) {
    RealNetwork network(3);
    change(network);
    const NetworkFile file = network.file();
    expect_contains(input_error_of([&] { return FloatOperators(file).format().classes; }), part);
  };
  refuse(
      [](RealNetwork& of) {
        of.op("t", "tanh", {"normal"}, {2, kSide, kSide});
      },
      "node 't': op 'tanh': expected normalise, convolution");
  const NetworkFile real = RealNetwork(1).whole();
  const FloatOperators network(real);
  QuantiserOptions options;
  options.outlier_alpha = 0.5;
  expect_contains(
      input_error_of([&] { return quantise(network, pictures(1, 2), "n", options).output; }),
      "folded in Transformers alone");
  expect_contains(input_error_of([&] { return quantise(network, pictures(1, 0), "n").output; }),
                  "calibration: no pictures");
}

}  // namespace
}  // namespace systole::model

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/build/operator_graph.h"
#include "model/graph/reference.h"
#include "model/metadata/datapath_metadata.h"
#include "model/network/network_writer.h"
#include "support/input_error.h"

namespace systole::model {
namespace {

// What each line says, and the node that it is about.

/// A file of one convolution and one other operator on `x`, of `type` and `shape`.
class SmallNetwork {
 public:
  explicit SmallNetwork(const std::string& type = "s8", const NetworkShape& shape = {4, 6, 6})
      : writer("small", "test") {
    writer.set_datapath(datapath_metadata({}));
    x = writer.input("x", {type, shape});
  }
  std::string convolve(const NetworkShape& weight, const NetworkShape& result,
                       const nlohmann::ordered_json& attributes, int shift = 20, int bias = 0) {
    const auto outputs = static_cast<std::size_t>(weight[0]);
    std::size_t count = 1;
    for (const std::int64_t size : weight) count *= static_cast<std::size_t>(size);
    return writer.node(
        "conv", "convolution",
        {x,
         writer.constant(make_tensor("w", FileDtype::kI8,
                                     std::vector<std::size_t>(weight.begin(), weight.end()),
                                     std::vector<std::int8_t>(count, 1))),
         writer.constant(make_tensor("b", FileDtype::kI32, {outputs},
                                     std::vector<std::int32_t>(outputs, bias))),
         writer.constant(make_tensor("m", FileDtype::kI32, {outputs},
                                     std::vector<std::int32_t>(outputs, 20000))),
         writer.constant(
             make_tensor("s", FileDtype::kI8, {outputs},
                         std::vector<std::int8_t>(outputs, static_cast<std::int8_t>(shift))))},
        {"s8", result}, attributes);
  }
  std::string error(const std::string& output) {
    return input_error_of([&] { return make_operator_network(writer.file("n.st", output)); });
  }

  NetworkWriter writer;
  std::string x;
};

TEST(OperatorGraph, RefusesWhatDoesNotFitInOneLine) {
  const nlohmann::ordered_json nothing = nlohmann::ordered_json::object();
  const auto conv = [](const NetworkShape& weight, const NetworkShape& result,
                       const nlohmann::ordered_json& attributes, int shift = 20, int bias = 0) {
    SmallNetwork network;
    const std::string made = network.convolve(weight, result, attributes, shift, bias);
    return network.error(made);
  };
  EXPECT_EQ(conv({5, 4, 3, 3}, {5, 4, 4}, nothing), "no error");
  expect_contains(conv({5, 3, 3, 3}, {5, 4, 4}, nothing), "n.st: node 'conv': input 'weight' (w)");
  expect_contains(conv({5, 4, 3, 3}, {5, 6, 6}, nothing), "shape is [5, 6, 6], expected [5, 4, 4]");
  expect_contains(conv({5, 4, 7, 3}, {5, 1, 4}, nothing), "a picture that holds a window of 7 x 3");
  expect_contains(conv({5, 2, 3, 3}, {5, 4, 4}, {{"groups", 2}}), "outputs that 2 groups divide");
  expect_contains(conv({6, 1, 3, 3}, {6, 4, 4}, {{"groups", 3}}), "channels that 3 groups divide");
  expect_contains(conv({5, 4, 3, 3}, {5, 4, 4}, {{"stride", 0}}), "'stride': found 0, expected");
  expect_contains(conv({5, 4, 3, 3}, {5, 4, 4}, nothing, 90), "conv.shift: 90, expected 0 to");
  expect_contains(conv({5, 4, 3, 3}, {5, 4, 4}, nothing, 20, 2147483647), "conv.bias: 2147483647");

  const auto op = [](const char* name, const NetworkShape& result,
                     const nlohmann::ordered_json& attributes, const std::string& type = "s8",
                     const std::string& result_type = "s8", const NetworkShape& shape = {4, 6, 6}) {
    SmallNetwork network(type, shape);
    return network.error(
        network.writer.node("op", name, {network.x}, {result_type, result}, attributes));
  };
  const nlohmann::ordered_json window = {{"rows", 3}, {"cols", 3}};
  EXPECT_EQ(op("max_pool", {4, 4, 4}, window), "no error");
  EXPECT_EQ(op("max_pool", {4, 4, 4}, window, "u8", "u8"), "no error");
  expect_contains(op("max_pool", {4, 4, 4}, window, "u8"), "type is s8, expected u8");
  expect_contains(op("max_pool", {4, 4, 4}, window, "s16"), "type is s16, expected s8 or u8");
  expect_contains(op("max_pool", {4, 10, 10}, {{"rows", 3}, {"cols", 3}, {"padding", 3}}),
                  "attribute 'padding': 3, expected less than a side");
  expect_contains(op("average_pool", {4, 4, 4}, window), "'factor' is missing");
  expect_contains(op("pad", {4, 6, 6}, {{"padding", 1}}), "expected [4, 8, 8]");
  EXPECT_EQ(op("pad", {4, 7, 11}, {{"padding", {1, 2, 0, 3}}}), "no error");
  expect_contains(op("pad", {4, 6, 6}, {{"padding", 0}}), "expected zeros on a side at least");
  expect_contains(op("pad", {4, 6, 6}, {{"padding", {0, 0, 0, 0}}}), "expected zeros on a side");
  for (const nlohmann::ordered_json& padding :
       {nlohmann::ordered_json{1, 2, 3}, nlohmann::ordered_json{1, 2, 3, 256},
        nlohmann::ordered_json{1, 2, 3, -1}, nlohmann::ordered_json{1, 2, 3, 0.5},
        nlohmann::ordered_json("1"), nlohmann::ordered_json(-1), nlohmann::ordered_json(256)}) {
    expect_contains(op("pad", {4, 8, 8}, {{"padding", padding}}),
                    "expected a whole number from 0 to 255 or four of them: [top, left, bottom");
  }
  expect_contains(op("max_pool", {4, 7, 4}, {{"rows", 3}, {"cols", 3}, {"padding", {0, 0, 3, 0}}}),
                  "attribute 'padding': [0,0,3,0], expected less than a side");
  expect_contains(op("max_pool", {4, 7, 4}, {{"rows", 4}, {"cols", 3}, {"padding", {0, 3, 3, 0}}}),
                  "attribute 'padding': [0,3,3,0], expected less than a side");
  expect_contains(op("max_pool", {4, 4}, window, "s8", "s8", {6, 6}),
                  "expected [channels, height, width]");
  expect_contains(op("requantise", {4, 6, 6}, {{"factor", {70000, 3}}}),
                  "op.factor.multiplier: 70000, expected 0 to 65535");
  expect_contains(op("max_pool", {4, 4, 4}, window, "u8", "u8", {4, 6, 6}) +
                      op("max_pool", {4, 4, 5}, window, "u8", "u8", {4, 6, 7}),
                  "expected a square picture");
  expect_contains(op("select_row", {1, 6}, {{"row", 0}}, "s8", "s8", {6, 6}),
                  "op 'select_row': expected one that is not of Transformers alone");
  const NetworkShape texts = {model::kTokens, 6};
  SmallNetwork open("s8", texts);
  const std::string made = open.writer.node("op", "relu", {open.x}, {"s8", texts});
  EXPECT_EQ(open.writer.file("n.st", made).shape_of("x"), texts);
  expect_contains(open.error(made), "shape is [tokens, 6], expected rows and columns");
}

TEST(OperatorGraph, RefusesTwoInputsAndThePictureItself) {
  SmallNetwork network;
  const std::string y = network.writer.input("y", {"s8", {4, 6, 6}});
  const std::string sum = network.writer.node("sum", "add", {network.x, y}, {"s16", {4, 6, 6}});
  expect_contains(network.error(sum), "inputs: found 2, expected 1");
  // The other one as a constant.
  const NetworkFile file = network.writer.file("n.st", sum);
  const OperatorNetwork with =
      make_operator_network(file, {{"y", std::vector<std::uint8_t>(4 * 6 * 6, 3)}});
  Reference reference(with.graph);
  reference.set_input("x", std::vector<std::int32_t>(4 * 6 * 6, 5));
  reference.run();
  EXPECT_EQ(reference.values("sum.clamp"), std::vector<std::int32_t>(4 * 6 * 6, 8));
}

}  // namespace
}  // namespace systole::model

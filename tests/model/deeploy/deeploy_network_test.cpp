#include "model/deeploy/deeploy_network.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/format/safetensors_writer.h"
#include "support/input_error.h"
#include "support/temp_directory.h"

namespace systole::model {
namespace {

using nlohmann::json;
using Integers = std::vector<std::int64_t>;

IntegerTensor computed(const std::string& op, const std::vector<IntegerTensor>& operands,
                       const json& attributes = json::object()) {
  std::vector<const IntegerTensor*> pointers;
  for (const IntegerTensor& operand : operands) pointers.push_back(&operand);
  // As a file has them: what is not negative is unsigned.
  return compute({"n", op, "n", {}, json::parse(attributes.dump()), {}}, pointers);
}

TEST(DeeployOperators, MoveAndMultiplyTensorsOfAnyRank) {
  const IntegerTensor x{{1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(computed("transpose", {x}, {{"perm", {2, 0, 1}}}).values, (Integers{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(computed("reshape", {x, {{2}, {-1, 2}}}).shape, (std::vector<std::size_t>{3, 2}));
  const IntegerTensor joined = computed("concat", {x, {{1, 1, 3}, {7, 8, 9}}}, {{"axis", -2}});
  EXPECT_EQ(joined.shape, (std::vector<std::size_t>{1, 3, 3}));
  EXPECT_EQ(joined.values, (Integers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(computed("concat", {x, {{1, 2, 1}, {7, 8}}}, {{"axis", 2}}).values,
            (Integers{1, 2, 3, 7, 4, 5, 6, 8}));
  EXPECT_EQ(computed("gather", {x, {{}, {1}}}, {{"axis", 1}}).values, (Integers{4, 5, 6}));
  EXPECT_EQ(computed("add", {x, {{2, 1}, {10, 20}}}).values, (Integers{11, 12, 13, 24, 25, 26}));
  EXPECT_EQ(computed("mul", {x, {{3}, {1, 0, -1}}}).values, (Integers{1, 0, -3, 4, 0, -6}));
  EXPECT_EQ(computed("mat_mul", {x, {{3, 2}, {1, 0, 0, 1, 1, 1}}}).values,
            (Integers{4, 5, 10, 11}));
  EXPECT_EQ(computed("gemm", {{{1, 2}, {1, 2}}, {{3, 2}, {1, 0, 0, 1, 1, 1}}, {{3}, {9, 9, 9}}},
                     {{"transA", 0}, {"transB", 1}, {"alpha", 1}, {"beta", 1}})
                .values,
            (Integers{10, 11, 12}));
  EXPECT_EQ(computed("integer_mean", {x}, {{"axes", {1}}, {"keepdims", 0}}).values,
            (Integers{3, 4, 5}));
  EXPECT_EQ(computed("requant_shift", {x, {{1}, {3}}, {{2, 1}, {0, 100}}},
                     {{"div", 4}, {"n_levels_out", 32}, {"signed", 0}})
                .values,
            (Integers{1, 2, 2, 28, 29, 30}));
  EXPECT_EQ(
      computed("true_integer_div", {x}, {{"Delta", 16}, {"eta", 10}, {"eps", 1}, {"y", 2}}).values,
      (Integers{7, 14, 21, 28, 35, 42}));
}

TEST(DeeployOperators, ConvolveAndPoolPictures) {
  // Two channels of 2 x 2 pixels.
  const IntegerTensor x{{1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40}};
  json attributes = {
      {"group", 1}, {"strides", {1, 2}}, {"pads", {1, 3, 0, 1}}, {"dilations", {1, 1}}};
  // A window of 2 x 2 pixels; padding of three columns is wider than it.
  const IntegerTensor w{{1, 2, 2, 2}, {1, 0, 0, 1, 0, 0, 0, 1}};
  const IntegerTensor y = computed("conv", {x, w}, attributes);
  EXPECT_EQ(y.shape, (std::vector<std::size_t>{1, 1, 2, 3}));
  // Places -3, -1 and 1 in each row of pixels; the second row's last place sees pixel 2.
  EXPECT_EQ(y.values, (Integers{0, 11, 0, 0, 33, 2}));
  EXPECT_EQ(computed("max_pool", {x},
                     {{"kernel_shape", {2, 1}}, {"strides", {1, 1}}, {"pads", {0, 0, 0, 0}}})
                .values,
            (Integers{3, 4, 30, 40}));
}

TEST(DeeployOperators, RefuseWhatTheyCannotCompute) {
  const IntegerTensor x{{1, 2}, {1, 2}}, large{{1, 2}, {1 << 30, 1 << 30}};
  const auto refused = [](const std::string& op, const std::vector<IntegerTensor>& operands,
                          const json& attributes, const char* what) {
    expect_contains(input_error_of([&] { (void)computed(op, operands, attributes); }), what);
  };
  refused("add", {x, {{3}, {1, 2, 3}}}, {}, "do not go together");
  refused("add", {x}, {}, "1 inputs, expected 2");
  refused("mat_mul", {x, x}, {}, "[1, 2] times [1, 2]");
  refused("transpose", {x}, {{"perm", {0, 0}}}, "no order of the axes");
  refused("transpose", {x}, {{"perm", {0}}}, "1 numbers, expected 2");
  refused("reshape", {x, {{1}, {3}}}, {}, "[1, 2] as [3]");
  refused("reshape", {x, {{2}, {1 << 24, 1 << 24}}}, {}, "more than 16777216 elements");
  refused("gather", {x, {{}, {2}}}, {{"axis", 1}}, "index 2 of 2");
  refused("concat", {x}, {{"axis", 2}}, "axis 2, expected -2 to 1");
  refused("requant_shift", {x, x, x}, {{"signed", 1}, {"n_levels_out", 256}, {"div", 3}},
          "expected a power of two");
  refused("requant_shift", {x, x, x}, {{"signed", 1}, {"n_levels_out", 0}, {"div", 4}},
          "expected 1 or more");
  refused("i_rms_norm", {large, x}, {{"D", 4}}, "too long or too large");
  refused("i_rms_norm", {x, {{1}, {1}}}, {{"D", 4}}, "another length");
  refused("i_gelu", {x}, {{"b", 5}, {"one", 3}}, "out of range");
  refused("i_gelu", {x}, {{"b", -5}}, "attribute 'one': expected a whole number");
  refused("i_softmax", {x},
          {{"coeffA", 1 << 30}, {"coeffB", 1 << 30}, {"coeffC", 0}, {"log2", 1}, {"n_levels", 2}},
          "too large");
  refused("erf", {x}, {}, "not supported");
}

class DeeployNetworkTest : public ::testing::Test {
 protected:
  /// y = x + w, with a document that `change` has changed.
  std::string file(const std::function<void(json&)>& change = [](json&) {}) {
    json document = {{"format_version", 1},
                     {"name", "n"},
                     {"source", ""},
                     {"architecture", {{"family", "deeploy"}}},
                     {"inputs", {"x"}},
                     {"outputs", {"y"}},
                     {"tensors",
                      {{"x", {{"type", "s32"}, {"shape", {1, 2}}}},
                       {"y", {{"type", "s32"}, {"shape", {1, 2}}}}}},
                     {"nodes",
                      {{{"name", "y"},
                        {"op", "add"},
                        {"inputs", {"x", "w"}},
                        {"outputs", {"y"}},
                        {"attributes", json::object()}}}}};
    change(document);
    const std::string path = directory_.path() + "/n.safetensors";
    write_safetensors(path,
                      {make_tensor("w", FileDtype::kI8, {2}, std::vector<std::int8_t>{5, -5})},
                      {{"format", "systole-network"}, {"network", document.dump()}});
    return path;
  }
  TempDirectory directory_;
};

TEST_F(DeeployNetworkTest, KeepsTheResultOfEveryNode) {
  const DeeployNetwork network = DeeployNetwork::open(file());
  const IntegerTensors values = network.run({{"x", {{1, 2}, {1, 2}}}});
  EXPECT_EQ(values.at("x").values, (Integers{1, 2}));
  EXPECT_EQ(values.at("y").values, (Integers{6, -3}));
  expect_contains(input_error_of([&] { (void)network.run({}); }), "input 'x': expected 2 values");
  const std::int64_t most = std::int64_t{1} << 31;
  expect_contains(input_error_of([&] {
                    (void)network.run({{"x", {{2}, {most, 0}}}});
                  }),
                  "input 'x': beyond 32 bits");
  expect_contains(input_error_of([&] {
                    (void)network.run({{"x", {{2}, {most - 1, 0}}}});
                  }),
                  "node 'y': a result beyond 32 bits");
}

TEST_F(DeeployNetworkTest, RefusesOtherFilesInOneLine) {
  const auto refused = [this](const std::function<void(json&)>& change, const char* what) {
    expect_contains(input_error_of([&] { (void)DeeployNetwork::open(file(change)); }), what);
  };
  refused([](json& d) { d["architecture"] = json::object(); }, "expected the family");
  refused([](json& d) { d["nodes"][0]["op"] = "sin"; }, "node 'y': op 'sin' is not supported");
  refused([](json& d) { d["nodes"][0]["inputs"][1] = "v"; }, "input 'v': neither a constant");
  refused([](json& d) { d["nodes"][0]["outputs"][0] = "x"; }, "'x': made twice");
  refused([](json& d) { d["tensors"].erase("y"); }, "'y' is missing");
  refused([](json& d) { d["tensors"]["y"]["shape"] = {1 << 20, 1 << 20}; }, "expected sizes");
  refused([](json& d) { d["outputs"][0] = "z"; }, "output 'z': no node makes it");
  refused([](json& d) { d["nodes"] = 3; }, "'nodes': expected a list");
  const DeeployNetwork other = DeeployNetwork::open(file([](json& d) {
    d["tensors"]["y"]["shape"] = {2, 1};
  }));
  expect_contains(input_error_of([&] {
                    (void)other.run({{"x", {{1, 2}, {1, 2}}}});
                  }),
                  "its result is [1, 2], expected [2, 1]");
}

}  // namespace
}  // namespace systole::model

#include "model/seeded/seeded_chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "model/graph/reference.h"
#include "support/temp_directory.h"
#include "testbench/network/tensors.h"

namespace systole::model {
namespace {

/// Every operator with factors that the file does not say, after a sum of different scales.
const char* const kAllOperators = R"(
[[inputs]]
name = "x"
type = "s8"
shape = [40, 64]
[[inputs]]
name = "y"
type = "s16"
shape = [40, 64]
[[nodes]]
name = "sum"
op = "add"
inputs = ["x", "y"]
[[nodes]]
op = "layer_norm"
[[nodes]]
name = "q"
op = "linear"
outputs = 96
[[nodes]]
op = "attention"
inputs = ["q", "q", "q"]
heads = 3
[[nodes]]
op = "gelu"
[[nodes]]
name = "wide"
op = "linear"
outputs = 64
type = "s16"
[[nodes]]
op = "silu"
[[nodes]]
op = "multiply"
inputs = ["silu7", "wide"]
[[nodes]]
op = "divide"
inputs = ["multiply8", "wide"]
[[nodes]]
op = "add_table"
[[nodes]]
op = "tanh"
[[nodes]]
op = "requantise"
type = "s16"
[[nodes]]
op = "requantise"
)";

const char* const kPictureOperators = R"(
[[inputs]]
name = "x"
type = "s8"
shape = [12, 16, 16]
[[nodes]]
op = "convolution"
outputs = 24
rows = 5
cols = 5
padding = 2
[[nodes]]
op = "relu"
[[nodes]]
op = "max_pool"
rows = 2
cols = 2
stride = 2
[[nodes]]
op = "convolution"
outputs = 24
rows = 3
cols = 3
groups = 24
[[nodes]]
op = "pad"
padding = [2, 0, 1, 1]
[[nodes]]
op = "average_pool"
rows = 3
cols = 3
)";

TEST(SeededChain, UsesTheCodesOfItsResultsWell) {
  const TempDirectory directory;
  for (const char* const text : {kAllOperators, kPictureOperators}) {
    const std::string path = directory.write("chain.toml", text);
    const OperatorNetwork network = read_chain(path, 1, {});
    Reference reference(network.graph);
    const Tensor& input = network.graph.tensors[testbench::input_tensor(network.graph)];
    reference.set_input(input.name,
                        testbench::widen(seeded_codes(input, 2, network.datapath), input.type));
    reference.run();
    int checked = 0;
    for (const Tensor& tensor : network.graph.tensors) {
      if (tensor.scale == 0.0 || tensor.kind == Tensor::Kind::kConstant) continue;
      double power = 0;
      const std::vector<std::int32_t> values = reference.values(tensor.name);
      for (const std::int32_t value : values) power += std::pow(value, 2);
      const double deviation = std::sqrt(power / static_cast<double>(values.size()));
      const double most = tensor.type == hw::DType::kS8 ? 127 : 32767;
      EXPECT_GT(deviation, most / 24) << tensor.name;
      EXPECT_LT(deviation, most / 1.2) << tensor.name;
      ++checked;
    }
    EXPECT_GE(checked, 7);
  }
}

TEST(SeededChain, IsTheSameForTheSameSeedAndTakesWhatTheFileSays) {
  const TempDirectory directory;
  const std::string path = directory.write("chain.toml", kAllOperators);
  const OperatorNetwork a = read_chain(path, 1, {}), b = read_chain(path, 1, {}),
                        c = read_chain(path, 2, {});
  ASSERT_EQ(a.graph.tensors.size(), c.graph.tensors.size());
  bool other = false;
  for (std::size_t i = 0; i < a.graph.tensors.size(); ++i) {
    EXPECT_EQ(a.graph.tensors[i].data, b.graph.tensors[i].data);
    other = other || a.graph.tensors[i].data != c.graph.tensors[i].data;
  }
  EXPECT_TRUE(other);
  EXPECT_EQ(a.name, "chain");
  const std::string said = directory.write("said.toml", R"(
name = "said"
[[inputs]]
name = "x"
type = "s8"
shape = [2, 3]
[[nodes]]
op = "requantise"
factor = [3, 1]
)");
  const OperatorNetwork network = read_chain(said, 1, {});
  EXPECT_EQ(network.name, "said");
  Reference reference(network.graph);
  reference.set_input("x", {1, 2, -3, 40, 0, 100});
  reference.run();
  EXPECT_EQ(reference.values("requantise1"), (std::vector<std::int32_t>{2, 3, -4, 60, 0, 127}));
}

}  // namespace
}  // namespace systole::model

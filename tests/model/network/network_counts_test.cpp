#include "model/network/network_counts.h"

#include <gtest/gtest.h>

#include "model/build/encoder_graph.h"
#include "model/build/text_graph.h"
#include "model/graph/describe_model.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "support/network/tiny_text.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

std::uint64_t macs_of(const std::string& path, std::uint32_t tokens) {
  const NetworkFile file(Safetensors::open(path));
  std::uint64_t macs = 0;
  for (const NodeCounts& node : count_network(file, tokens)) macs += node.macs;
  return macs;
}

/// The operator graph, which the machine runs, is counted in another way.
TEST(NetworkCounts, FindTheProductsOfTheOperatorGraph) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  for (const char* const name : {"vit17", "vit17-post", "vit65-sparse90-ae"}) {
    const IntegerVit vit = load_integer_vit(integer_model_path(name));
    write_network(vit, path);
    EXPECT_EQ(macs_of(path, 1), describe_graph(make_vit_graph(vit)).macs) << name;
  }
}

TEST(NetworkCounts, CountEveryNode) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_integer_vit(integer_model_path("vit17")), path);
  const NetworkFile file(Safetensors::open(path));
  std::uint64_t constants = 0;
  for (const NodeCounts& row : count_network(file, 1)) {
    constants += row.constant_bytes;
    if (row.node->name == "blocks.1.mlp.fc1") {
      EXPECT_EQ(row.result, (NetworkShape{17, 256}));
      EXPECT_EQ(row.macs, 17U * 64 * 256);
      EXPECT_EQ(row.constant_bytes, 256U * (64 + 4 + 4 + 1));
      EXPECT_EQ(row.result_bytes, 17U * 256);
    }
    if (row.node->name == "blocks.1.attn.context") {
      EXPECT_EQ(row.macs, 2U * 17 * 17 * 64);
    }
    if (row.node->name == "embedding") {
      EXPECT_EQ(row.result_bytes, 2U * 17 * 64);
    }
  }
  std::uint64_t stored = 0;
  for (const std::string& name : file.constants().names()) {
    stored += file.constants().tensor(name).bytes;
  }
  EXPECT_EQ(constants, stored);
}

TEST(NetworkCounts, DrawEveryNodeAndEdge) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_integer_vit(integer_model_path("vit17")), path);
  const NetworkFile file(Safetensors::open(path));
  const std::string dot = network_dot(file);
  for (const NetworkNode& node : file.document().nodes) expect_contains(dot, "\\n" + node.name);
  expect_contains(dot, "\"value norm\" -> \"value class_row\" [label=\"s8 [17, 64]\"]");
  EXPECT_EQ(dot.find("norm.bias"), std::string::npos);  // constants are no edges
}

}  // namespace
}  // namespace systole::model

#include "mapper/group/attention_group.h"

#include <gtest/gtest.h>

#include <string>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "tests/mapper/test_graphs.h"

namespace systole::mapper {
namespace {

std::size_t attention_groups(const model::Graph& graph, const hw::Machine& machine) {
  std::size_t count = 0;
  for (const Group& group : fuse(graph, machine).groups) count += group.attention() ? 1 : 0;
  return count;
}

TEST(AttentionGroup, IsOneForEachLayerOnAMachineWithEngines) {
  for (const char* model : {"vit65", "vit65-sparse90", "vit65-sparse90-ae"}) {
    EXPECT_EQ(attention_groups(graph_of(model), hw::find_machine("vitcod")), 4U) << model;
    EXPECT_EQ(attention_groups(graph_of(model), hw::find_machine("transformer")), 0U) << model;
  }
}

TEST(AttentionGroup, HasTheMaskOfEveryHead) {
  const model::Graph graph = graph_of("vit65-sparse90");
  for (const Group& group : fuse(graph, hw::find_machine("vitcod")).groups) {
    if (!group.attention()) continue;
    ASSERT_EQ(group.attention()->heads.size(), 4U);
    EXPECT_EQ(group.attention()->dim, 16U);
    EXPECT_EQ(group.attention()->query.cols, 64U);
    EXPECT_EQ(group.attention()->out.cols, 64U);
    std::size_t kept = 0;
    for (const hw::SparseHead& head : group.attention()->heads) {
      EXPECT_EQ(head.queries, 65U);
      kept += head.kept();
    }
    EXPECT_GT(kept, 4U * 65 * 65 / 20);
    EXPECT_LT(kept, 4U * 65 * 65 / 6);
  }
}

TEST(AttentionGroup, NeedsATableThatIsAMask) {
  model::Graph graph = graph_of("vit65-sparse90");
  for (model::Tensor& tensor : graph.tensors) {
    if (tensor.name.find("head0.pruned") != std::string::npos) tensor.data.edit().front() = 7;
  }
  for (const Group& group : fuse(graph, hw::find_machine("vitcod")).groups) {
    if (group.attention()) {
      EXPECT_EQ(group.attention()->heads.size(), 3U);
    }
  }
}

TEST(AttentionGroup, NeedsTheDeferredSoftmax) {
  model::Graph graph = graph_of("vit65");
  for (model::Node& node : graph.nodes) {
    if (node.is(hw::StageOp::kSoftmax)) node.stage()->stage.imm[0] = 1;
  }
  EXPECT_EQ(attention_groups(graph, hw::find_machine("vitcod")), 0U);
}

}  // namespace
}  // namespace systole::mapper

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/mapping.h"
#include "model/seeded/shapes.h"

namespace systole::mapper {
namespace {

using Role = FusionDecision::Role;

/// A layer of two heads of 64 with so many tokens, without weights.
model::Graph layer(std::uint32_t tokens) {
  model::SeededOptions options;
  options.shape_only = true;
  return model::make_seeded_encoder("layer", {1, 128, 2, 512, true}, tokens, 1, options);
}

/// Memories in which rows of 1024 scores leave little room: softmax in their chain costs about as
/// much as a separate pass.
hw::Machine with_lanes(std::uint32_t lanes) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = 128;
  machine.array.cols = 64;
  machine.scratchpad = {64, 2, 1};
  machine.accumulator.kib = 64;
  machine.accumulator.banks = 2;
  machine.postop.lanes = lanes;
  return machine;
}

FusionDecision softmax(const model::Graph& graph, const std::vector<FusionDecision>& decisions) {
  for (const FusionDecision& decision : decisions) {
    if (graph.nodes[decision.node].is(hw::StageOp::kSoftmax)) return decision;
  }
  ADD_FAILURE() << "no softmax";
  return {};
}

TEST(CloseCalls, AreMadeAsAsked) {
  const model::Graph graph = layer(1024);
  for (const std::uint32_t lanes : {16U, 64U}) {
    const hw::Machine machine = with_lanes(lanes);
    const auto role = [&](CloseCalls calls) {
      return softmax(graph, fuse(graph, machine, calls).decisions).role;
    };
    EXPECT_EQ(role(CloseCalls::kByCost), lanes == 16 ? Role::kPost : Role::kAnchor);
    EXPECT_EQ(role(CloseCalls::kTogether), Role::kPost);
    EXPECT_EQ(role(CloseCalls::kApart), Role::kAnchor);
  }
}

// Where one way is expected to cost far less, it is taken.
TEST(CloseCalls, AreNoOthers) {
  const model::Graph graph = layer(128);
  const hw::Machine machine = hw::find_machine("transformer");
  for (const CloseCalls calls : {CloseCalls::kByCost, CloseCalls::kTogether, CloseCalls::kApart}) {
    EXPECT_EQ(softmax(graph, fuse(graph, machine, calls).decisions).role, Role::kPost);
  }
}

// By cost alone, four times the lanes took 12 % longer. Results leave 16 bytes at a time with any
// of them, and those of 64 lanes hold up the stages in longer pieces: 0.6 % are left.
TEST(CloseCalls, AreDecidedByReplay) {
  const model::Graph graph = layer(1024);
  const Mapping few = map_graph(graph, with_lanes(16)), many = map_graph(graph, with_lanes(64));
  EXPECT_LE(many.expected_cycles, few.expected_cycles + few.expected_cycles / 140);
  const FusionDecision decision = softmax(graph, many.decisions);
  EXPECT_EQ(decision.role, Role::kPost);
  EXPECT_NE(decision.why.find("cycles together"), std::string::npos) << decision.why;
  EXPECT_NE(decision.why.find("by replay"), std::string::npos) << decision.why;
}

}  // namespace
}  // namespace systole::mapper

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/mapping.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "support/random/random_graph.h"

namespace systole::mapper {
namespace {

using hw::DType;
using model::View;

constexpr std::uint32_t kSide = 6, kChannels = 4;

hw::Padding on_all_sides(std::uint8_t pixels) { return hw::Padding::on_all_sides(pixels); }

hw::Window window_over(std::uint32_t side, hw::Gather gather, std::uint16_t kernel,
                       hw::Padding padding) {
  hw::Window window;
  window.gather = gather;
  window.kernel_rows = window.kernel_cols = kernel;
  window.padding = padding;
  window.height = window.width = side;
  window.channels = kChannels;
  return window;
}

/// A picture with two zeros on each side, and what reads it.
class PaddedPicture {
 public:
  PaddedPicture() : builder("padded") {
    picture = builder.whole(builder.add_tensor(
        {"picture", kSide * kSide, kChannels, DType::kS8, model::Tensor::Kind::kInput, {}, 0.0}));
    hw::Stage keep = model::clamp_stage(8);
    keep.imm = {lowest, 127};
    padded = builder.pooling(
        "pad", picture, window_over(kSide, hw::Gather::kSum, 1, on_all_sides(2)), keep, DType::kS8);
  }
  View convolve(const std::string& name, hw::Padding padding) {
    const View weight = builder.whole(builder.add_tensor(
        {name + ".weight", 9 * kChannels, 8, DType::kS8, model::Tensor::Kind::kConstant, {}, 0.0}));
    const View sums = builder.convolution(
        name, padded, window_over(kSide + 4, hw::Gather::kPatches, 3, padding), weight);
    return builder.stage(name + ".out", sums,
                         model::requantise_stage({20000, 20}, 8, hw::Rounding::kHalfUp),
                         DType::kS8);
  }
  View pool(const std::string& name, hw::Gather gather) {
    return builder.pooling(name, padded, window_over(kSide + 4, gather, 3, {}),
                           model::requantise_stage({20000, 16}, 8, hw::Rounding::kHalfUp),
                           DType::kS8);
  }
  Fusion fused(View out, hw::FusionLevel level = hw::FusionLevel::kAll) {
    builder.tensor(out.tensor).kind = model::Tensor::Kind::kOutput;
    graph = std::move(builder).take();
    hw::Machine machine = hw::find_machine("transformer");
    machine.mapper.fusion = level;
    return fuse(graph, machine);
  }

  static constexpr std::int64_t lowest = -128;
  model::GraphBuilder builder;
  model::Graph graph;
  View picture, padded;
};

TEST(PadFusion, MakesZerosPaddingOfAConvolution) {
  PaddedPicture of;
  const Fusion fusion = of.fused(of.convolve("conv", {1, 0, 3, 255 - 2}));
  ASSERT_EQ(fusion.groups.size(), 1U);
  const Group& group = fusion.groups.front();
  EXPECT_EQ(group.window->padding, (hw::Padding{3, 2, 5, 255}));
  EXPECT_EQ(group.window->height, kSide);
  EXPECT_EQ(group.window->rows(), std::uint64_t{group.out.rows});
  EXPECT_TRUE(same(group.a, of.picture));
  EXPECT_EQ(fusion.decisions[0].role, FusionDecision::Role::kPre);
  EXPECT_EQ(fusion.decisions[1].role, FusionDecision::Role::kAnchor);
  EXPECT_EQ(fusion.decisions[2].role, FusionDecision::Role::kPost);
}

TEST(PadFusion, KeepsAPassWhoseZerosAreTooManyForASide) {
  for (const hw::Padding& padding : {hw::Padding{254, 0, 0, 0}, hw::Padding{0, 254, 0, 0},
                                     hw::Padding{0, 0, 254, 0}, hw::Padding{0, 0, 0, 254}}) {
    PaddedPicture of;
    EXPECT_EQ(of.fused(of.convolve("conv", padding)).groups.size(), 2U) << "256 of at most 255";
  }
}

TEST(PadFusion, MakesZerosPaddingOfSums) {
  PaddedPicture of;
  const Fusion fusion = of.fused(of.pool("pool", hw::Gather::kSum));
  ASSERT_EQ(fusion.groups.size(), 1U);
  EXPECT_EQ(fusion.decisions[1].role, FusionDecision::Role::kAnchor);
}

TEST(PadFusion, GoesToAllReadersOrToNone) {
  PaddedPicture of;
  const View left = of.convolve("left", {}), right = of.convolve("right", {});
  const View sum = of.builder.stage(
      "sum", left, model::add_tensor_stage(DType::kS8, {}, 31, hw::Rounding::kHalfUp), DType::kS32,
      {{}, right});
  const Fusion both = of.fused(sum);
  EXPECT_EQ(both.groups.size(), 3U) << "two convolutions, and the sum";
  for (const Group& group : both.groups) {
    if (group.window) EXPECT_EQ(group.window->padding, on_all_sides(2));
  }

  PaddedPicture mixed;
  mixed.convolve("conv", {});
  const Fusion one = mixed.fused(mixed.pool("pool", hw::Gather::kMaximum));
  EXPECT_EQ(one.groups.size(), 3U);
  EXPECT_NE(one.decisions[0].why.find("counts padding as zeros"), std::string::npos);
}

TEST(PadFusion, KeepsTheColumnsOfGroups) {
  PaddedPicture of;
  View out;
  for (const std::uint32_t first : {0U, 2U}) {
    const std::string name = "group" + std::to_string(first);
    View columns = of.padded;
    columns.col = first;
    columns.cols = 2;
    hw::Window window = window_over(kSide + 4, hw::Gather::kPatches, 3, {});
    window.channels = 2;
    const View weight = of.builder.whole(of.builder.add_tensor(
        {name + ".weight", 18, 4, DType::kS8, model::Tensor::Kind::kConstant, {}, 0.0}));
    out = of.builder.stage(name + ".out", of.builder.convolution(name, columns, window, weight),
                           model::requantise_stage({20000, 20}, 8, hw::Rounding::kHalfUp),
                           DType::kS8);
  }
  const Fusion fusion = of.fused(out);
  ASSERT_EQ(fusion.groups.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fusion.groups[i].a.tensor, of.picture.tensor);
    EXPECT_EQ(fusion.groups[i].a.col, 2 * i);
    EXPECT_EQ(fusion.groups[i].a.cols, 2U);
  }
}

TEST(PadFusion, LeavesMaximaAndOtherLevelsAlone) {
  PaddedPicture maximum;
  EXPECT_EQ(maximum.fused(maximum.pool("pool", hw::Gather::kMaximum)).groups.size(), 2U)
      << "a zero may be the largest, padding cannot";
  PaddedPicture post;
  const Fusion fusion = post.fused(post.convolve("conv", {}), hw::FusionLevel::kPost);
  EXPECT_EQ(fusion.groups.size(), 2U);
  EXPECT_NE(fusion.decisions[0].why.find("mapper.fusion"), std::string::npos);
}

TEST(PadFusion, KeepsAPassThatChangesPixels) {
  model::GraphBuilder builder("clamped");
  const View picture = builder.whole(builder.add_tensor(
      {"picture", kSide * kSide, kChannels, DType::kS8, model::Tensor::Kind::kInput, {}, 0.0}));
  const View padded =
      builder.pooling("pad", picture, window_over(kSide, hw::Gather::kSum, 1, on_all_sides(2)),
                      model::clamp_stage(8), DType::kS8);  // -128 becomes -127
  const View out =
      builder.pooling("pool", padded, window_over(kSide + 4, hw::Gather::kSum, 3, {}),
                      model::requantise_stage({20000, 16}, 8, hw::Rounding::kHalfUp), DType::kS8);
  builder.tensor(out.tensor).kind = model::Tensor::Kind::kOutput;
  const model::Graph graph = std::move(builder).take();
  EXPECT_EQ(fuse(graph, hw::find_machine("transformer")).groups.size(), 2U);
}

}  // namespace
}  // namespace systole::mapper

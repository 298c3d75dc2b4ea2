#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/engines.h"
#include "hw/function/softmax.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/attention/head_mix_line_rtl.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/attention/head_case.h"
#include "tests/rtl/attention/head_mix_case.h"

namespace systole::testbench {
namespace {

hw::Machine::Backends backends(bool sparse, bool dense) {
  hw::Machine::Backends backends;
  if (sparse) backends.sparser_line = hw::Backend::kRtl;
  if (dense) backends.denser_line = hw::Backend::kRtl;
  return backends;
}

TEST(AttentionRtlEngine, ComputesAnyHeadLikeTheModel) {
  std::mt19937 random(1);
  hw::ScoreFunctions functions{hw::make_softmax_constants(1e-4), std::nullopt};
  hw::Stage relu;
  relu.op = hw::StageOp::kRelu;
  hw::AttentionModel model;
  for (const auto& [sparse, dense] : {std::pair{true, false}, {false, true}, {true, true}}) {
    for (const auto mapping :
         {hw::SparserMapping::kColumnPerLine, hw::SparserMapping::kBroadcast}) {
      const hw::Machine::Attention attention = hw::engines(7, 8, mapping);
      RtlReport report;
      const auto rtl =
          make_attention_engine(attention, backends(sparse, dense), {true, "", 3}, report);
      for (int i = 0; i < 40; ++i) {
        const HeadCase test(hw::split_anywhere(hw::random_mask(random, 30), random),
                            random_count(random, 1, 40), random_count(random, 1, 40), attention,
                            random);
        functions.stages.reset();
        if (i % 2 == 0) functions.stages.emplace(hw::Chain{{relu}, hw::DType::kS32});
        const hw::AttentionSums expected = model.sums(test.head, test.operands, functions);
        const hw::AttentionSums found = rtl->sums(test.head, test.operands, functions);
        ASSERT_EQ(found.sums, expected.sums);
        ASSERT_EQ(found.divisor, expected.divisor);
      }
      EXPECT_EQ(report.count("sparser_line"), sparse ? 1U : 0U);
      EXPECT_EQ(report.count("denser_line"), dense ? 1U : 0U);
      for (const auto& [block, counts] : report) {
        EXPECT_GT(counts.operations, 100U) << block;
        EXPECT_GT(counts.cycles, counts.operations) << block;
        EXPECT_EQ(counts.mismatches, 0U) << block;
      }
    }
  }
}

TEST(AttentionRtlEngine, NeedsLinesThatAreBuilt) {
  RtlReport report;
  try {
    (void)make_attention_engine(hw::Machine{}.attention, backends(true, false), {}, report);
    FAIL();
  } catch (const hw::InputError& error) {
    EXPECT_STREQ(error.what(),
                 "sparser_line RTL: attention.lines is 0, expected attention engines");
  }
  EXPECT_THROW((void)make_attention_engine(hw::engines(64, 4), backends(false, true), {}, report),
               hw::InputError);
  EXPECT_THROW((void)make_mix_engine(hw::engines(64, 16), {}, report), hw::InputError);
}

TEST(MixRtlEngine, MixesAnyTokenLikeTheModel) {
  std::mt19937 random(2);
  RtlReport report;
  const auto rtl = make_mix_engine(hw::engines(), {true, "", 3}, report);
  const RtlCounts& counts = report["head_mix_line"];
  hw::MixModel model;
  for (int i = 0; i < 300; ++i) {
    const hw::HeadMix mix = random_mix(random, HeadMixLineRtl::kMaxHeads);
    const std::size_t features = random_count(random, 1, 70);
    const Bytes in = random_bytes(mix.in_heads * features, random);
    Bytes expected(mix.out_heads * features), found(expected.size());
    model.mix(mix, in.data(), features, expected.data());
    rtl->mix(mix, in.data(), features, found.data());
    ASSERT_EQ(found, expected) << i;
  }
  EXPECT_EQ(counts.operations, 300U);
  EXPECT_GT(counts.cycles, 300U);
  EXPECT_EQ(counts.mismatches, 0U);
}

struct EngineSize {
  std::uint32_t cols, kib, ports;
};

hw::Machine machine_of(EngineSize size) {
  hw::Machine machine;
  machine.array.rows = machine.array.cols = size.cols;
  machine.accumulator = {size.kib, 2, size.ports};
  return machine;
}

/// Tiles as mappers lay them, on whole memory rows, and as any program may, in between. All of them
/// near the middle of the memory, so that they meet each other and the bank boundary.
hw::AccumulatorTile random_tile(std::mt19937_64& random, std::uint64_t cols, std::uint64_t size) {
  hw::AccumulatorTile tile;
  tile.rows = 1 + random() % 12;
  tile.cols = 1 + random() % (3 * cols);
  tile.pitch = tile.cols + random() % cols;
  if (random() % 2 == 0) tile.pitch = (tile.cols + cols - 1) / cols * cols;
  tile.first = size / 2 - random() % (12 * cols);
  if (random() % 2 == 0) tile.first -= tile.first % cols;
  tile.rows = std::min(tile.rows, (size - tile.first) / tile.pitch);
  return tile;
}

class AccumulatorEngine : public ::testing::TestWithParam<EngineSize> {};

TEST_P(AccumulatorEngine, EqualsTheModel) {
  const hw::Machine machine = machine_of(GetParam());
  const std::uint64_t size = machine.accumulator.kib * 256;
  RtlReport report;
  const auto engine = make_accumulator_engine(machine, {true, {}, 3}, report);
  const RtlCounts& counts = report["accumulator_sram"];
  hw::AccumulatorModel model(size);
  std::mt19937_64 random(4);
  std::uint64_t operations = 0;
  for (int i = 0; i < 600; ++i) {
    hw::AccumulatorTile tile = random_tile(random, machine.array.cols, size);
    const std::size_t pitch = tile.cols + random() % 3;
    std::vector<std::int32_t> values(tile.rows * pitch);
    for (std::int32_t& value : values) value = static_cast<std::int32_t>(random() >> 32U);
    const bool accumulate = random() % 2 == 0;
    engine->write(tile, values.data(), pitch, accumulate);
    model.write(tile, values.data(), pitch, accumulate);
    std::vector<std::int32_t> actual(values.size(), 7);
    std::vector<std::int32_t> expected(values.size(), 7);
    if (random() % 2 == 0) tile.first -= random() % machine.array.cols;
    engine->read(tile, actual.data(), pitch);
    model.read(tile, expected.data(), pitch);
    ASSERT_EQ(actual, expected);
    operations += 2;
  }
  EXPECT_EQ(counts.operations, operations);
  EXPECT_GT(counts.cycles, operations);
  EXPECT_EQ(counts.mismatches, 0U);
}

std::string engine_size_name(const ::testing::TestParamInfo<EngineSize>& info) {
  return std::to_string(info.param.cols) + "x" + std::to_string(info.param.ports) + "_" +
         std::to_string(info.param.kib) + "KiB";
}
INSTANTIATE_TEST_SUITE_P(Machines, AccumulatorEngine,
                         ::testing::Values(EngineSize{4, 4, 2}, EngineSize{4, 4, 1},
                                           EngineSize{8, 64, 2}, EngineSize{16, 64, 2},
                                           EngineSize{16, 256, 2}),
                         engine_size_name);

TEST(AccumulatorRtlEngine, CountsWholeTilesColumnByColumn) {
  RtlReport report;
  const auto engine = make_accumulator_engine(machine_of({4, 4, 2}), {}, report);
  const RtlCounts& counts = report["accumulator_sram"];
  std::vector<std::int32_t> values(10 * 8, 1);
  engine->write({16, 10, 8, 8}, values.data(), 8, true);
  EXPECT_EQ(counts.operations, 1U);
  EXPECT_EQ(counts.cycles, 2U * 11);
  engine->write({17, 10, 8, 8}, values.data(), 8, true);
  EXPECT_EQ(counts.cycles, 2U * 11 + 10U * 4) << "three memory rows per row";
}

TEST(AccumulatorRtlEngine, RefusesMachinesThatAreNotBuilt) {
  RtlReport report;
  EXPECT_THROW((void)make_accumulator_engine(machine_of({32, 64, 2}), {}, report), hw::InputError);
  EXPECT_THROW((void)make_accumulator_engine(machine_of({16, 512, 2}), {}, report), hw::InputError);
  EXPECT_THROW((void)make_accumulator_engine(machine_of({16, 64, 1}), {}, report), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

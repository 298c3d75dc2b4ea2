#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "testbench/rtl/engine/engines.h"

namespace systole::testbench {
namespace {

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

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "Vmpu_tree_8x4_checked.h"
#include "base/error.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/mpu_tree_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/support/half_gemv_case.h"

namespace systole::testbench {
namespace {

using test::HalfGemvCase;
using test::HalfPattern;

/// DFX's depth, and a small one whose blocks are always shorter than the adder is deep.
constexpr hw::MatrixUnit kLarge{64, 16, 6, 11, 16};
constexpr hw::MatrixUnit kSmall{8, 16, 6, 11, 4};
const RtlOptions kCheckedLane{true, "", 9};

/// All lanes of all rows through the one lane. Returns the cycles of the last.
RtlCycles run_all(MpuTreeRtl& lane, HalfGemvCase& test, const BackPressure& pressure) {
  RtlCycles cycles;
  for (std::size_t row = 0; row < test.shape.rows; ++row) {
    for (std::size_t i = 0; i < test.shape.lanes; ++i) {
      cycles = lane.run(test.args(), row, i, pressure);
    }
  }
  return cycles;
}

/// The case's result is the model's.
void expect_values(MpuTreeRtl& lane, HalfGemvCase& test, const BackPressure& pressure = {}) {
  hw::half_gemv(test.args());
  const std::vector<hw::Half> expected = test.y;
  test.y.assign(test.y.size(), hw::Half{0x5a5a});
  (void)run_all(lane, test, pressure);
  for (std::size_t row = 0; row < test.shape.rows; ++row) {
    for (std::size_t column = 0; column < test.shape.slices * test.shape.lanes; ++column) {
      const std::size_t i = row * test.y_pitch() + column;
      ASSERT_EQ(test.y[i].bits, expected[i].bits) << row << ' ' << column;
    }
  }
}

std::uint64_t contract(const hw::MatrixUnit& unit, const HalfGemvCase& test) {
  return hw::matrix_cycles(unit, test.shape.k_tiles * unit.depth, test.shape.slices * unit.lanes);
}

TEST(MpuTree, AddsAsTheModelDoes) {
  std::mt19937_64 random(61);
  const auto lane = make_mpu_tree(kSmall, kCheckedLane);
  for (const HalfPattern pattern : test::kHalfPatterns) {
    for (int i = 0; i < 20; ++i) {
      HalfGemvCase test({1, 1 + random() % 4, 1 + random() % 9, kSmall.depth, 4}, pattern, random);
      ASSERT_NO_FATAL_FAILURE(expect_values(*lane, test));
    }
  }
  EXPECT_FALSE(lane->failed());
}

TEST(MpuTree, KeepsItsValuesUnderBackPressure) {
  std::mt19937_64 random(62);
  const auto lane = make_mpu_tree(kSmall, kCheckedLane);
  for (int i = 0; i < 100; ++i) {
    HalfGemvCase test({1, 1 + random() % 4, 1 + random() % 9, kSmall.depth, 2},
                      HalfPattern::kOrdinary, random);
    ASSERT_NO_FATAL_FAILURE(expect_values(*lane, test, random_pressure(random)));
  }
  EXPECT_FALSE(lane->failed());
}

TEST(MpuTree, TakesTheCyclesOfTheContract) {
  std::mt19937_64 random(63);
  for (std::uint32_t sums = 1; sums <= 4; ++sums) {
    hw::MatrixUnit unit = kSmall;
    unit.partial_sums = sums;
    const auto lane = make_mpu_tree(unit, kCheckedLane);
    for (std::size_t k_tiles = 1; k_tiles < 5; ++k_tiles) {
      for (std::size_t slices = 1; slices < 10; ++slices) {
        HalfGemvCase test({1, k_tiles, slices, unit.depth, 1}, HalfPattern::kOrdinary, random);
        const RtlCycles free = lane->run(test.args(), 0, 0);
        ASSERT_EQ(free.stalled, 0U);
        ASSERT_EQ(free.cycles, contract(unit, test)) << sums << ' ' << k_tiles << ' ' << slices;
        const BackPressure slow_sink{0, 300, random()};
        const RtlCycles refused = lane->run(test.args(), 0, 0, slow_sink);
        ASSERT_EQ(refused.cycles, contract(unit, test) + refused.stalled);
        const BackPressure slow_source{300, 0, random()};
        const RtlCycles withheld = lane->run(test.args(), 0, 0, slow_source);
        ASSERT_GE(withheld.cycles, contract(unit, test));
        ASSERT_LE(withheld.cycles, contract(unit, test) + withheld.stalled);
      }
    }
    EXPECT_FALSE(lane->failed());
  }
}

/// With eleven partial sums and more no beat waits, whatever holds it up.
TEST(MpuTree, FastBuildOfDfxHasValuesAndCyclesOfTheModel) {
  std::mt19937_64 random(64);
  for (const std::uint32_t sums : {4U, 11U, 16U}) {
    hw::MatrixUnit unit = kLarge;
    unit.partial_sums = sums;
    const auto lane = make_mpu_tree(unit);
    for (const HalfPattern pattern : test::kHalfPatterns) {
      HalfGemvCase test({1, 3, 2 * sums, unit.depth, 2}, pattern, random);
      ASSERT_NO_FATAL_FAILURE(expect_values(*lane, test));
      EXPECT_EQ(run_all(*lane, test, {}).cycles, contract(unit, test));
      if (sums < unit.add) continue;
      const RtlCycles held = run_all(*lane, test, random_pressure(random));
      EXPECT_EQ(held.cycles, contract(unit, test) + held.stalled);
      EXPECT_EQ(contract(unit, test), 3 * 2 * sums + 83U);
    }
  }
}

TEST(MpuTree, BuildOfDfxWithChecksHasTheSameValues) {
  std::mt19937_64 random(65);
  const auto lane = make_mpu_tree(kLarge, kCheckedLane);
  HalfGemvCase test({1, 2, 16, kLarge.depth, 1}, HalfPattern::kOrdinary, random);
  expect_values(*lane, test, random_pressure(random));
  EXPECT_FALSE(lane->failed());
}

TEST(MpuTree, OthersThanThoseBuiltAreRefused) {
  for (const hw::MatrixUnit& unit :
       {hw::MatrixUnit{32, 16, 6, 11, 4}, hw::MatrixUnit{64, 16, 6, 11, 17},
        hw::MatrixUnit{8, 16, 6, 11, 5}, hw::MatrixUnit{64, 16, 5, 11, 16},
        hw::MatrixUnit{64, 16, 6, 10, 16}}) {
    EXPECT_THROW((void)make_mpu_tree(unit), hw::InputError);
  }
}

/// A lane that has just taken the first beat of slot 0.
class MpuTreeProtocol : public testing::Test {
 protected:
  MpuTreeProtocol() {
    dut_->valid_i = 1;
    dut_->ready_i = 1;
    dut_->first_i = 1;
    dut_->last_i = 1;
    dut_->slot_i = 0;
    dut_.tick();
  }
  VerilatedDut<Vmpu_tree_8x4_checked> dut_{kCheckedLane};
};

TEST_F(MpuTreeProtocol, ASlotWaitsForItsSumAloneAndAFirstBeatForNone) {
  dut_->first_i = 0;
  for (int cycle = 1; cycle < 12; ++cycle) {
    dut_->valid_i = 0;
    for (unsigned slot = 0; slot < 4; ++slot) {
      dut_->slot_i = static_cast<CData>(slot);
      dut_.settle();
      EXPECT_EQ(dut_->ready_o, slot != 0 || cycle == 11) << slot << " in cycle " << cycle;
    }
    dut_->slot_i = 0;
    dut_->first_i = 1;
    dut_.settle();
    EXPECT_EQ(dut_->ready_o, 1);
    dut_->first_i = 0;
    dut_.tick();
  }
  EXPECT_FALSE(dut_.failed());
}

TEST_F(MpuTreeProtocol, AssertionFiresWhenABeatIsWithdrawn) {
  dut_->first_i = 0;
  expect_assertion("InputHeld_A", dut_, 1, [this] { dut_->valid_i = 0; });
}

TEST_F(MpuTreeProtocol, AssertionFiresWhenABeatChanges) {
  dut_->first_i = 0;
  expect_assertion("InputHeld_A", dut_, 1, [this] { dut_->x_i[0] = 1; });
}

}  // namespace
}  // namespace systole::testbench

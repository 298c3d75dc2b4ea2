// rtl/array/systole_systolic_array.sv at its pins: its assertions, clearing, stalls, and what it
// does without them.

#include <gtest/gtest.h>

#include <cstdint>

#include "Vsystolic_array_4_checked.h"
#include "testbench/rtl/array/array_command.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

class SystolicArrayProtocol : public ::testing::Test {
 protected:
  SystolicArrayProtocol() : dut({true, {}, 3}) {
    dut->overlap_i = 2;
    dut->a_unsigned_i = 0;
    idle_inputs(*dut);
  }
  void tick(int cycles = 1) {
    for (int i = 0; i < cycles; ++i) dut.tick();
  }
  /// Shifts in rows of `weight`: all 4, or some of them.
  void load(std::uint8_t weight, int rows = 4) {
    dut->weight_valid_i = 1;
    dut->weight_i = 0x01010101U * weight;
    tick(rows);
    dut->weight_valid_i = 0;
  }
  void clear() {
    dut->clear_i = 1;
    tick();
    dut->clear_i = 0;
  }
  /// Sends a fold of one row, whose columns give `sum` each.
  void expect_row_of(std::uint32_t sum) {
    dut->act_valid_i = 1;
    dut->act_last_i = 1;
    dut->act_i = 0x04030201;
    dut.settle();
    EXPECT_TRUE(dut->act_ready_o);
    tick();
    dut->act_valid_i = 0;
    tick(6);
    EXPECT_TRUE(dut->result_valid_o);
    EXPECT_TRUE(dut->result_last_o);
    for (int c = 0; c < 4; ++c) EXPECT_EQ(dut->result_o[c], sum);
    EXPECT_FALSE(dut.failed());
  }

  VerilatedDut<Vsystolic_array_4_checked> dut;
};

TEST_F(SystolicArrayProtocol, HoldsFor1000CyclesOfSilence) {
  tick(1000);
  EXPECT_FALSE(dut.failed());
}

TEST_F(SystolicArrayProtocol, AssertsThatActivationsAreHeld) {
  dut->act_valid_i = 1;  // not taken: there are no weights
  dut->act_i = 1;
  expect_assertion("ActHeld_A", dut, 2, [this] { dut->act_i = 2; });
}

TEST_F(SystolicArrayProtocol, AssertsThatWeightsAreNotWithdrawn) {
  load(1);  // no fold streams, so the next fold's weights have to wait
  dut->weight_valid_i = 1;
  expect_assertion("WeightHeld_A", dut, 2, [this] { dut->weight_valid_i = 0; });
}

TEST_F(SystolicArrayProtocol, AssertsThatNobodyClearsWithinAFold) {
  load(1);
  dut->act_valid_i = 1;
  expect_assertion("ClearBetweenFolds_A", dut, 1, [this] {
    dut->act_valid_i = 0;
    dut->clear_i = 1;
  });
}

TEST_F(SystolicArrayProtocol, AssertsThatTheOverlapIsKnown) {
  expect_assertion("OverlapKnown_A", dut, 0, [this] { dut->overlap_i = 3; });
}

// Weights for a fold that never comes are dropped; those that follow are used.
TEST_F(SystolicArrayProtocol, ClearDropsWeights) {
  for (const int rows : {1, 2, 3, 4}) {
    load(5, rows);
    clear();
    dut.settle();
    EXPECT_FALSE(dut->act_ready_o);
    load(3);
    expect_row_of(30);
  }
}

TEST_F(SystolicArrayProtocol, TakesNothingWhileItClears) {
  load(5, 2);
  dut->weight_valid_i = 1;
  dut->clear_i = 1;
  dut.settle();
  EXPECT_FALSE(dut->weight_ready_o);
  clear();
  load(5);
  dut->act_valid_i = 1;
  dut->clear_i = 1;
  dut.settle();
  EXPECT_FALSE(dut->act_ready_o);
  clear();
  dut->act_valid_i = 0;
  for (int cycle = 0; cycle < 20; ++cycle) {
    EXPECT_FALSE(dut->result_valid_o);
    tick();
  }
  load(3);
  expect_row_of(30);
}

// Without `pending` the array does not wait for beats: rows come out with the gaps they had.
TEST_F(SystolicArrayProtocol, DrainsWhatItHasIfNothingIsPending) {
  load(1);
  int results = 0;
  for (int cycle = 0; cycle < 40; ++cycle) {
    dut->act_valid_i = cycle % 3 == 0 && cycle < 12;
    dut->act_i = 0x01010101;
    dut->act_last_i = cycle == 9;
    dut.settle();
    EXPECT_FALSE(dut->stalled_o);
    if (dut->result_valid_o) {
      EXPECT_EQ(cycle, 7 + 3 * results);
      EXPECT_EQ(dut->result_o[3], 4U);
      ++results;
    }
    tick();
  }
  EXPECT_EQ(results, 4);
  EXPECT_FALSE(dut.failed());
}

// The consumer takes a row once, also if the array stalls for its inputs meanwhile.
TEST_F(SystolicArrayProtocol, HandsOutARowOnceWhileItWaitsForInputs) {
  load(1);
  dut->act_i = 0x01010101;
  dut->act_valid_i = 1;
  tick(7);
  dut->act_valid_i = 0;
  dut->act_pending_i = 1;
  int results = 0;
  for (int cycle = 0; cycle < 10; ++cycle) {
    dut.settle();
    EXPECT_TRUE(dut->stalled_o);
    results += dut->result_valid_o;
    tick();
  }
  EXPECT_EQ(results, 1);
  EXPECT_FALSE(dut.failed());
}

}  // namespace
}  // namespace systole::testbench

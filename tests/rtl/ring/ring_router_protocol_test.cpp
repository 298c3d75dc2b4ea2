#include <gtest/gtest.h>

#include <vector>

#include "Vring_router_4_checked.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/router_pins.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/support/half_oracle.h"

namespace systole::testbench {
namespace {

/// A router that is quiet, with a flit on the pins of one way, from the link and from the core.
class RingRouterProtocol : public testing::Test {
 protected:
  static constexpr RouterWay kTestedWay = RouterWay::kLeft;

  RingRouterProtocol() {
    const std::vector<hw::Half> ones(hw::kFlitHalves, hw::Half{0x3c00});
    const RouterFlit flit{ones, 3, 2, false};
    quiet_router(*dut_);
    drive_link(*dut_, kTestedWay, flit);
    drive_own(*dut_, kTestedWay, flit);
  }

  /// Assertions look at a cycle when it ends, those about the next one when that ends.
  void run(int cycles) {
    for (int i = 0; i < cycles; ++i) dut_.tick();
  }

  /// Fills the buffer, so that the next flit waits.
  void fill() {
    set_way_bit(dut_->valid_i, kTestedWay, true);
    for (int i = 0; i < 8; ++i) {
      set_way_bit(dut_->last_i, kTestedWay, i % 4 == 3);
      run(1);
    }
    set_way_bit(dut_->last_i, kTestedWay, false);
    run(2);
    ASSERT_FALSE(way_bit(dut_->ready_o, kTestedWay));
    ASSERT_FALSE(dut_.failed()) << "a flit may wait";
  }

  /// The core's own flit waits for the link.
  void offer_own() {
    set_way_bit(dut_->own_valid_i, kTestedWay, true);
    run(2);
    ASSERT_FALSE(dut_.failed()) << "a flit may wait";
  }

  VerilatedDut<Vring_router_4_checked> dut_{{true, "", 9}};
};

TEST_F(RingRouterProtocol, AssertionFiresWhenAFlitIsWithdrawn) {
  fill();
  expect_assertion("InputHeld_A", dut_, 0, [&] { set_way_bit(dut_->valid_i, kTestedWay, false); });
}

TEST_F(RingRouterProtocol, AssertionFiresWhenAFlitChanges) {
  fill();
  expect_assertion("InputHeld_A", dut_, 0, [&] { dut_->data_i[16] ^= 1; });
}

TEST_F(RingRouterProtocol, AssertionFiresWhenAnOwnFlitIsWithdrawn) {
  const ExpectedAssertions expected({"OutputHeld_A", "OwnHeld_A"});
  offer_own();
  set_way_bit(dut_->own_valid_i, kTestedWay, false);
  run(2);
  EXPECT_TRUE(dut_.failed());
}

TEST_F(RingRouterProtocol, AssertionFiresWhenAnOwnFlitChanges) {
  const ExpectedAssertions expected({"OutputHeld_A", "OwnHeld_A"});
  offer_own();
  dut_->own_data_i[31] ^= 1;
  run(2);
  EXPECT_TRUE(dut_.failed());
}

TEST_F(RingRouterProtocol, AssertionFiresWithoutHops) {
  expect_assertion("HopsLeft_A", dut_, 0, [&] {
    set_way_field(dut_->hops_i, kTestedWay, kRouterCoreBits, 0);
    set_way_bit(dut_->valid_i, kTestedWay, true);
  });
}

TEST_F(RingRouterProtocol, AssertionFiresWithoutOwnHops) {
  expect_assertion("OwnHopsLeft_A", dut_, 0, [&] {
    set_way_field(dut_->own_hops_i, kTestedWay, kRouterCoreBits, 0);
    set_way_bit(dut_->own_valid_i, kTestedWay, true);
  });
}

TEST_F(RingRouterProtocol, AssertionFiresWhenAPacketIsTooLong) {
  set_way_bit(dut_->valid_i, kTestedWay, true);
  expect_assertion("LengthFits_A", dut_, 3, [] {});
}

TEST_F(RingRouterProtocol, AssertionFiresWhenAPacketChangesItsCore) {
  set_way_bit(dut_->valid_i, kTestedWay, true);
  run(1);
  expect_assertion("OnePacket_A", dut_, 0,
                   [&] { set_way_field(dut_->core_i, kTestedWay, kRouterCoreBits, 4); });
}

TEST_F(RingRouterProtocol, AssertionFiresWhenAnOwnPacketChangesItsHops) {
  set_way_bit(dut_->own_valid_i, kTestedWay, true);
  set_way_bit(dut_->ready_i, kTestedWay, true);
  run(1);
  expect_assertion("OwnOnePacket_A", dut_, 0,
                   [&] { set_way_field(dut_->own_hops_i, kTestedWay, kRouterCoreBits, 1); });
}

}  // namespace
}  // namespace systole::testbench

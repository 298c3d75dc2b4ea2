#include <gtest/gtest.h>

#include <cstdint>

#include "hw/description/machine_file.h"
#include "support/report_values.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/systemc_test.h"

/// How a core asks its host for an operator; the test is the host.
namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::load_command;

class HostCallTest : public test::SystemCTest {
 protected:
  static hw::Machine machine() {
    hw::Machine machine = hw::find_machine("tiny");
    machine.host.operators = hw::HostOperators::kFloat;
    return machine;
  }

  static hw::Command host_command() {
    hw::cmd::HostCall call;
    call.m = call.n = 4;
    call.in = {4096, 16};
    call.out = {8192, 4};
    return {call};
  }

  /// Plays the host for `cycles`, and gives the core back what it asked for.
  static std::uint64_t answer(CoreRig& rig, std::uint64_t cycles) {
    sc_core::wait(rig.interrupt.posedge_event());
    const std::uint64_t call = rig.get(Core::kHostCall);
    EXPECT_EQ(rig.get(Core::kStatus), 1U | 2U | 4U) << "busy, interrupt, waits for the host";
    rig.set(Core::kControl, Core::kAcknowledge);
    EXPECT_EQ(rig.get(Core::kStatus), 1U | 4U);
    sc_core::wait(sc_core::sc_time(static_cast<double>(cycles), sc_core::SC_NS));
    rig.set(Core::kControl, Core::kHostDone);
    EXPECT_EQ(rig.get(Core::kHostCall), 0U);
    return call;
  }
};

TEST_F(HostCallTest, IsAFenceOnBothSides) {
  CoreRig rig(machine());
  rig.host_functions.emplace_back();
  rig.run([&] {
    // Nothing that the loads touch conflicts with the host's ranges.
    rig.begin({load_command(0, 0, 64), host_command(), load_command(64, 64, 64)});
    EXPECT_EQ(answer(rig, 5000), CoreRig::kProgramAddress + hw::kHeaderBytes + hw::kCommandBytes);
    sc_core::wait(rig.interrupt.posedge_event());
    EXPECT_EQ(rig.get(Core::kHostCall), 0U) << "done, and no call";
    EXPECT_EQ(rig.get(Core::kStatus), 2U);
  });
  EXPECT_GE(rig[1].started, rig[0].completed);
  EXPECT_GE(rig[1].completed, rig[1].started + 5000);
  EXPECT_GE(rig[2].dispatched, rig[1].completed);
  EXPECT_EQ(rig[1].unit, hw::Unit::kHost);
}

TEST_F(HostCallTest, TimeOfTheHostIsItsOwnCause) {
  CoreRig rig(machine());
  rig.host_functions.emplace_back();
  rig.run([&] {
    rig.begin({host_command()});
    answer(rig, 3000);
    sc_core::wait(rig.interrupt.posedge_event());
  });
  const std::uint64_t total = rig.core.processor.cycle();
  const auto values = test::values_of(rig.core.processor.report(total));
  EXPECT_EQ(values.at("stalled.host_operator"), rig[0].completed - rig[0].started);
  EXPECT_EQ(values.at("total"), total);
}

TEST_F(HostCallTest, DoneWithoutACallChangesNothing) {
  CoreRig rig(machine());
  rig.run([&] {
    rig.set(Core::kControl, Core::kHostDone);
    rig.execute({load_command(0, 0, 64)});
    EXPECT_EQ(rig.get(Core::kStatus), 2U);
  });
}

}  // namespace
}  // namespace systole::tlm_model

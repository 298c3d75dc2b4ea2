/// rtl/core/systole_core_registers.sv.
#include <gtest/gtest.h>

#include "Vcore_registers_4_checked.h"
#include "testbench/rtl/drive/axi_responder_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/core/core_registers_run.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

TEST(CoreRegisters, HoldWhatTheTableSaysWhateverIsAskedAndHappens) {
  RegisterRun quick({true, "", 1}, 0), slow({true, "", 2}, 600);
  for (RegisterRun* run : {&quick, &slow}) {
    run->run(60'000);
    if (HasFatalFailure()) return;
    EXPECT_GT(run->reads, 2'000U);
    EXPECT_GT(run->writes, 2'000U);
    EXPECT_GT(run->refused, 1'000U);
    EXPECT_GT(run->starts, 150U);
    EXPECT_GT(run->ignored, 100U);
    EXPECT_GT(run->calls, 100U);
    EXPECT_GT(run->finishes, 150U);
    EXPECT_GT(run->beside, 5U) << "an interrupt in the cycle in which one is acknowledged";
  }
}

TEST(CoreRegisters, AssertThatOnlyWhatRunsIsOver) {
  VerilatedDut<Vcore_registers_4_checked> dut({true, "", 3});
  drive_responder_pins(dut, {}, CoreRegistersRtl::kBytes);
  dut->finish_i = dut->fault_i = dut->stuck_i = dut->call_i = 0;
  expect_assertion("FinishesWhatRuns_A", dut, 5, [&] { dut->finish_i = 1; });
}

}  // namespace
}  // namespace systole::testbench

#include "testbench/run/machine_run.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/tlm/systemc_test.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

class MachineRunTest : public test::SystemCTest {
 protected:
  MachineRunTest()
      : system_("system", machine_, tlm_model::make_models(machine_), 0, image_, functions_,
                false) {}

  const hw::Machine machine_ = hw::find_machine("tiny");
  const hw::MemoryImage image_;
  const std::vector<hw::HostFunction> functions_;
  tlm_model::System system_;
};

TEST_F(MachineRunTest, EndsWithTheWorkOfTheHost) {
  EXPECT_FALSE(system_.done());
  const MachineRun run = run_machine(system_);
  EXPECT_TRUE(system_.done());
  EXPECT_EQ(run.blocks.size(), 6U);
  EXPECT_GT(run.kernel_events, 0U);
  EXPECT_GT(run.wall_seconds, 0.0);
}

TEST_F(MachineRunTest, ADeadlockIsAnError) {
  struct Stuck {
    [[nodiscard]] static bool done() { return false; }
    [[nodiscard]] static std::vector<hw::BlockReport> reports() { return {}; }
  } machine;
  try {
    static_cast<void>(run_machine(machine));
    FAIL() << "expected an error";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("deadlock"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace systole::testbench

/// Waveforms of several cores: each by its name, with the times in its accounts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/fst_reader.h"
#include "support/tlm/systemc_test.h"
#include "testbench/cores/cores_simulation.h"
#include "tlm/common/wave_states.h"

namespace systole::testbench {
namespace {

using test::Workload;
using tlm_model::wave_state;

class CoresWave : public test::SystemCTest {
 protected:
  CoresWave() {
    hw::Machine machine = hw::find_machine("tiny");
    system = hw::equal_cores(machine, 3);
    const CoreSubject subject{
        {std::shared_ptr<void>(), &workload.graph},
        std::make_shared<mapper::Mapping>(mapper::map_graph(workload.graph, machine))};
    plan = plan_batch(system, std::vector<CoreSubject>(3, subject), workload.inputs.size());
    options.wave.path = directory.path("cores.fst");
    options.wave.inferences = 0;
    options.alone = false;
    test::fresh_kernel();
    result = simulate(plan, workload.inputs, options);
  }

  const Workload workload = test::encoder_workload({1, 32, 2, 64, true}, 13, 5);
  hw::CoreSystem system;
  CorePlan plan;
  TempDirectory directory;
  CoresOptions options;
  CoresResult result;
};

TEST_F(CoresWave, StatesOfEachCoreAreThoseOfItsAccounts) {
  const test::Vcd vcd = test::read_fst(options.wave.path);
  const std::uint64_t period = 1'000'000 / system.cores.front().machine.core.clock_mhz;
  std::size_t compared = 0, inferences = 0;
  for (const CoreShare& core : result.cores) {
    for (const hw::BlockReport& block : result.blocks) {
      const std::string prefix = core.name + ".";
      const std::string path = "system." + block.name + ".state";
      if (!block.time || block.name.compare(0, prefix.size(), prefix) != 0) continue;
      if (vcd.variables.count(path) == 0 || block.name == prefix + "command_processor") continue;
      EXPECT_EQ(vcd.time_at(path, wave_state("busy")), block.time->busy * period) << path;
      for (const hw::TimeAccount::Stall& stall : block.time->stalled) {
        if (stall.cause == "no_command") continue;
        EXPECT_EQ(vcd.time_at(path, wave_state(stall.cause)), stall.time * period)
            << path << " " << stall.cause;
      }
      ++compared;
    }
    inferences += *vcd.last("system." + core.name + "_host.inferences");
  }
  EXPECT_EQ(compared, 9U);  // load, array, store
  EXPECT_EQ(inferences, workload.inputs.size());
}

TEST_F(CoresWave, TheViewOpensOnAllCoresSideBySide) {
  const std::string view = read_file(directory.path("cores.gtkw"));
  std::vector<std::string> groups, labels;
  std::istringstream lines(view);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("-", 0) == 0 && (groups.empty() || groups.back() != line))
      groups.push_back(line);
    if (groups.size() == 1 && line.rfind("+{", 0) == 0) {
      labels.push_back(line.substr(2, line.find('}') - 2));
    }
  }
  ASSERT_GT(groups.size(), 4U);
  EXPECT_EQ(groups[0], "-Cores");
  EXPECT_EQ(groups[1], "-core0: Host");
  for (const std::string core : {"core0", "core1", "core2"}) {
    for (const char* unit : {"processor", "load", "array", "array operator", "store"}) {
      EXPECT_EQ(std::count(labels.begin(), labels.end(), core + " " + unit), 1) << core << unit;
    }
    // Each core's operators and commands are its own program's.
    EXPECT_NE(view.find("cores." + core + ".operators.txt"), view.npos);
  }
  // It opens on the first operator of the first core.
  const std::uint64_t begin = std::stoull(view.substr(view.find("[timestart] ") + 12));
  std::uint64_t dispatched = ~std::uint64_t{0};
  for (const tlm_model::CommandTrace& trace : result.traces) {
    dispatched = std::min(dispatched, trace.dispatched);
  }
  const std::uint64_t period = 1'000'000 / system.cores.front().machine.core.clock_mhz;
  EXPECT_GT(begin, 0U);
  EXPECT_LE(begin, dispatched * period);
}

}  // namespace
}  // namespace systole::testbench

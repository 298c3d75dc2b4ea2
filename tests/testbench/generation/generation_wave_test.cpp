#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "hw/description/machine_file.h"
#include "hw/ring/instruction.h"
#include "model/float/gpt.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/vcd_reader.h"
#include "testbench/generation/generation.h"
#include "tlm/common/wave_states.h"

namespace systole::testbench {
namespace {

// All time of a ring counts, so a wave of all passes shows what the accounts have.
TEST(GenerationWave, AgreesWithTheAccounts) {
  const TempDirectory directory;
  GenerationTask task;
  task.shape = model::gpt_shape("gpt2");
  task.shape.encoder.layers = 2;
  task.shape.vocabulary = 500;
  task.prompt.assign(2, 0);
  for (const char* name : {"dfx", "dfx-ideal"}) {
    hw::Machine machine = hw::find_machine(name);
    machine.dfx.cores = 2;
    const std::uint64_t cycle_ps = 1'000'000 / machine.core.clock_mhz;
    task.wave = {};
    test::fresh_kernel();
    const Generation plain = generate(machine, task);
    task.wave.path = directory.path("ring.vcd");
    task.wave.inferences = 0;
    test::fresh_kernel();
    const Generation recorded = generate(machine, task);
    EXPECT_EQ(recorded.total_ps, plain.total_ps);
    EXPECT_EQ(recorded.phases, plain.phases);
    const test::Vcd vcd = test::parse_vcd(read_file(task.wave.path));
    EXPECT_EQ(vcd.end, recorded.total_ps);
    std::size_t compared = 0;
    for (const hw::BlockReport& block : recorded.blocks) {
      if (!block.time) continue;
      const std::string path = "system." + block.name + ".state";
      const auto shown = [&](const std::string& state) {
        return vcd.time_at(path, tlm_model::wave_state(state));
      };
      const std::uint64_t unit_ps = block.time->unit == "ps" ? 1 : cycle_ps;
      EXPECT_EQ(shown("busy"), block.time->busy * unit_ps) << path;
      for (const hw::TimeAccount::Stall& stall : block.time->stalled) {
        EXPECT_EQ(shown(stall.cause), stall.time * unit_ps) << path << " " << stall.cause;
      }
      ++compared;
    }
    EXPECT_EQ(compared, 2 * hw::dfx::kUnits + 1) << "and PCIe";
    for (std::size_t phase = 0; phase < hw::dfx::kPhases; ++phase) {
      EXPECT_EQ(vcd.time_at("system.core0.phase", phase), recorded.phases.at(phase) * cycle_ps);
    }
    for (std::size_t link = 0; link < recorded.link_bytes.size(); ++link) {
      const std::string right = std::to_string(link), left = std::to_string((link + 1) % 2);
      EXPECT_EQ(*vcd.last("system.to_right" + right + ".bytes") +
                    *vcd.last("system.to_left" + left + ".bytes"),
                recorded.link_bytes[link]);
    }
  }
  test::fresh_kernel();
}

}  // namespace
}  // namespace systole::testbench

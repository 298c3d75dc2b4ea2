#include "tlm/core/command_processor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/report_values.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::kNoStages;
using test::load_command;
using test::matmul_command;
using test::move_command;

hw::Machine machine_with(std::uint32_t load, std::uint32_t compute, std::uint32_t store) {
  hw::Machine machine;
  machine.scratchpad.ports = machine.accumulator.ports = 4;
  machine.core.load_queue = load;
  machine.core.compute_queue = compute;
  machine.core.store_queue = store;
  return machine;
}

std::map<std::string, std::uint64_t> account(CoreRig& rig) {
  const CommandProcessor& processor = rig.core.processor;
  return test::values_of(processor.report(processor.cycle()));
}

class CommandProcessorTest : public test::SystemCTest {};

TEST_F(CommandProcessorTest, DispatchesOneCommandACycle) {
  CoreRig rig(machine_with(8, 16, 4));
  std::vector<hw::Command> commands;
  for (std::uint32_t i = 0; i < 4; ++i) {
    commands.push_back(load_command(1024 * i, 4096, 64));
    commands.push_back(matmul_command({4, 4, 4}, 65536, 131072, 0));
  }
  rig.run([&] { rig.execute(commands); });
  for (std::uint32_t i = 1; i < 8; ++i) {
    EXPECT_EQ(rig[i].dispatched, rig[i - 1].dispatched + 1) << i;
  }
}

TEST_F(CommandProcessorTest, AStationTakesAsManyCommandsAsItHasEntries) {
  for (const std::uint32_t entries : {1U, 2U, 5U}) {
    test::fresh_kernel();
    CoreRig rig(machine_with(8, entries, 4));
    const std::vector<hw::Command> commands(8, matmul_command({64, 16, 16}, 0, 65536, 0));
    rig.run([&] { rig.execute(commands); });
    for (std::uint32_t i = 1; i < 8; ++i) {
      // An entry is free from the cycle on in which the command's results are complete.
      EXPECT_EQ(rig[i].dispatched,
                i < entries ? rig[i - 1].dispatched + 1 : rig[i - entries].completed + 1)
          << i << " with " << entries;
    }
  }
}

TEST_F(CommandProcessorTest, AFullStationHoldsBackTheOthers) {
  CoreRig rig(machine_with(8, 1, 4));
  rig.run([&] {
    rig.execute({matmul_command({64, 16, 16}, 0, 65536, 0),
                 matmul_command({64, 16, 16}, 0, 65536, 4096), load_command(131072, 4096, 64)});
  });
  EXPECT_EQ(rig[1].dispatched, rig[0].completed + 1);
  EXPECT_EQ(rig[2].dispatched, rig[1].dispatched + 1) << "dispatch is in order";
}

TEST_F(CommandProcessorTest, FetchesWholeChunksAndOneAhead) {
  for (const std::uint32_t chunk : {1U, 3U, 16U, 64U}) {
    test::fresh_kernel();
    hw::Machine machine = machine_with(8, 64, 4);
    machine.core.fetch_commands = chunk;
    CoreRig rig(machine);
    rig.run([&] {
      rig.execute(std::vector<hw::Command>(40, matmul_command({4, 4, 4}, 0, 65536, 0)));
    });
    const auto values = account(rig);
    EXPECT_EQ(values.at("commands"), 40U);
    // With the header comes a whole chunk, however short the program is.
    EXPECT_EQ(values.at("fetched_bytes"),
              hw::kHeaderBytes + std::max(chunk, 41U) * hw::kCommandBytes);
    EXPECT_EQ(values.at("busy"), 40U) << "a cycle each";
    EXPECT_GT(values.at("stalled.fetch"), 0U);
    EXPECT_EQ(values.at("busy") + values.at("stalled.fetch") + values.at("stalled.station_full") +
                  values.at("idle"),
              values.at("total"));
  }
}

TEST_F(CommandProcessorTest, WaitsForTheFirstCommandsAsLongAsMemoryTakes) {
  CoreRig rig(machine_with(8, 16, 4));
  rig.run([&] { rig.execute({matmul_command({4, 4, 4}, 0, 65536, 0)}); });
  // The header and 16 commands are 1,344 bytes, 84 beats of the bus; bus 4 + 4 cycles, controller
  // 20 ns, tRCD + CL 28.32 ns on a closed row.
  const auto values = account(rig);
  EXPECT_GE(values.at("stalled.fetch"), 84U + 8 + 20 + 28);
  EXPECT_LE(values.at("stalled.fetch"), 250U);
  EXPECT_EQ(rig[0].dispatched, rig.core.processor.start_cycle() + values.at("stalled.fetch") + 1);
}

TEST_F(CommandProcessorTest, ACallWaitsForAllBeforeItAndForTheHost) {
  hw::Machine machine = machine_with(8, 16, 4);
  machine.core.call_cycles = 700;
  machine.core.loop_cycles = 30;
  CoreRig rig(machine);
  std::vector<hw::Command> commands;
  for (std::uint32_t i = 0; i < 3; ++i) commands.push_back(load_command(4096 * i, 4096, 64));
  commands[1].issue = hw::Issue::kLoop;
  commands[2].issue = hw::Issue::kCall;
  rig.run([&] { rig.execute(commands); });
  EXPECT_EQ(rig[1].dispatched, rig[0].dispatched + 30 + 1);
  EXPECT_EQ(rig[2].dispatched, std::max(rig[0].completed, rig[1].completed) + 700 + 1);
  const auto values = account(rig);
  EXPECT_EQ(values.at("stalled.host"), rig[2].dispatched - rig[0].dispatched - 2);
}

// Loops of two matmuls: the third begins when both of the first have begun.
TEST_F(CommandProcessorTest, TwoLoopsAreInFlight) {
  CoreRig rig(machine_with(8, 16, 4));
  std::vector<hw::Command> commands(8, matmul_command({64, 16, 16}, 0, 65536, 0));
  for (std::size_t i = 0; i < commands.size(); i += 2) commands[i].issue = hw::Issue::kLoop;
  rig.run([&] { rig.execute(commands); });
  EXPECT_EQ(rig[3].dispatched, rig[0].dispatched + 3);
  EXPECT_GE(rig[4].dispatched, rig[1].started);
  EXPECT_LE(rig[4].dispatched, rig[1].started + 2);
  EXPECT_GE(rig[6].dispatched, rig[3].started);
}

TEST_F(CommandProcessorTest, AnEmptyProgramEndsAtOnce) {
  CoreRig rig(machine_with(8, 16, 4));
  rig.run([&] {
    rig.execute({});
    EXPECT_EQ(account(rig).at("commands"), 0U);
    EXPECT_GT(rig.get(Core::kCycles), 0U) << "end has to be fetched";
  });
}

TEST_F(CommandProcessorTest, ReportsCommandsInTheOrderOfTheirCompletion) {
  CoreRig rig(machine_with(8, 16, 4));
  rig.run([&] {
    rig.execute({load_command(196608, 4096, 4096), matmul_command({64, 4, 4}, 0, 65536, 0),
                 move_command(4096, 131072, 1, 4)},
                {kNoStages});
  });
  EXPECT_EQ(rig.completion_order, (std::vector<std::uint32_t>{2, 1, 0}));
  EXPECT_LE(rig[2].completed, rig[1].completed);
  EXPECT_LE(rig[1].completed, rig[0].completed);
}

TEST_F(CommandProcessorTest, IdleAndBusyCyclesOfSeveralRunsAddUp) {
  CoreRig rig(machine_with(8, 16, 4));
  rig.run([&] {
    for (int i = 0; i < 3; ++i) {
      rig.execute({matmul_command({64, 16, 16}, 0, 65536, 0)});
      rig.set(Core::kControl, Core::kAcknowledge);
      sc_core::wait(1, sc_core::SC_US);
    }
  });
  const auto values = account(rig);
  EXPECT_EQ(values.at("commands"), 3U);
  EXPECT_GE(values.at("idle"), 3000U);
  EXPECT_EQ(values.at("total"), rig.core.processor.cycle());
}

}  // namespace
}  // namespace systole::tlm_model

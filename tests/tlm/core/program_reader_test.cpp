#include "tlm/core/program_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "hw/program/program_image.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::matmul_command;
using test::move_command;

hw::Machine machine_with_slots(std::uint32_t slots) {
  hw::Machine machine;
  machine.core.chain_slots = slots;
  machine.core.store_queue = 64;
  return machine;
}

/// Chains that differ in their clamp, one stage each.
std::vector<hw::Chain> different_chains(std::size_t count) {
  std::vector<hw::Chain> chains(count);
  for (std::size_t i = 0; i < count; ++i) {
    hw::Stage clamp;
    clamp.op = hw::StageOp::kClamp;
    clamp.imm[0] = -static_cast<std::int64_t>(i) - 1;
    clamp.imm[1] = static_cast<std::int64_t>(i) + 1;
    chains[i].stages = {clamp};
  }
  return chains;
}

/// Moves of one element each through the given chains.
std::vector<hw::Command> moves_through(const std::vector<std::uint16_t>& chains) {
  std::vector<hw::Command> commands;
  for (const std::uint16_t chain : chains) {
    commands.push_back(
        move_command(0, 65536 + 64 * static_cast<std::uint32_t>(commands.size()), 1, 1));
    commands.back().as<hw::cmd::Move>()->chain.chain = chain;
  }
  return commands;
}

class ProgramReaderTest : public test::SystemCTest {
 protected:
  /// Bytes of chains that a run of the moves reads.
  static std::uint64_t chain_bytes(std::uint32_t slots, const std::vector<std::uint16_t>& chains,
                                   std::size_t count) {
    test::fresh_kernel();
    CoreRig rig(machine_with_slots(slots));
    rig.run([&] { rig.execute(moves_through(chains), different_chains(count)); });
    EXPECT_EQ(rig.core.processor.fault(), "");
    const std::size_t commands = std::max<std::size_t>(chains.size() + 1, 16);
    return rig.core.processor.fetch->stats().bytes - hw::kHeaderBytes -
           commands * hw::kCommandBytes;
  }
};

constexpr std::uint64_t kChainBytes = 8 + 72;

TEST_F(ProgramReaderTest, AChainComesInOnceAsLongAsItIsHeld) {
  std::vector<std::uint16_t> twice;
  for (std::uint16_t i = 0; i < 20; ++i) twice.push_back(i % 10);
  EXPECT_EQ(chain_bytes(16, twice, 10), 10 * kChainBytes);
  EXPECT_EQ(chain_bytes(8, twice, 10), 14 * kChainBytes) << "8 and 9 have the slots of 0 and 1";
  EXPECT_EQ(chain_bytes(8, {3, 3, 3, 3}, 10), kChainBytes) << "those that no command uses stay";
}

TEST_F(ProgramReaderTest, AChainStaysUntilItsCommandsHaveCompleted) {
  CoreRig rig(machine_with_slots(8));
  std::vector<std::uint16_t> chains;
  for (std::uint16_t i = 0; i < 9; ++i) chains.push_back(i);
  std::vector<hw::Command> commands = moves_through(chains);
  // The first move waits for a long matmul.
  commands.insert(commands.begin(), matmul_command({512, 16, 16}, 0, 131072, 0));
  rig.run([&] { rig.execute(commands, different_chains(9)); });
  EXPECT_LT(rig[8].dispatched, rig[0].completed) << "eight chains are held";
  EXPECT_GT(rig[9].dispatched, rig[1].completed) << "the ninth takes the slot of the first";
}

TEST_F(ProgramReaderTest, ResultsDoNotDependOnHowManyChainsAreHeld) {
  std::vector<std::uint16_t> chains;
  for (std::uint16_t i = 0; i < 40; ++i) chains.push_back(static_cast<std::uint16_t>(i * 7 % 11));
  for (const std::uint32_t slots : {8U, 64U}) {
    test::fresh_kernel();
    CoreRig rig(machine_with_slots(slots));
    rig.core.memory.accumulators()[0] = 100;
    rig.run([&] { rig.execute(moves_through(chains), different_chains(11)); });
    for (std::size_t i = 0; i < chains.size(); ++i) {
      EXPECT_EQ(rig.core.memory.scratchpad.data()[65536 + 64 * i], chains[i] + 1) << i;
    }
  }
}

TEST_F(ProgramReaderTest, RunsTheBytesInMemoryWhateverRanBefore) {
  CoreRig rig(machine_with_slots(8));
  rig.core.memory.accumulators()[0] = 100;
  rig.run([&] {
    for (const std::int64_t highest : {5, 9, 5}) {
      std::vector<hw::Chain> chains = different_chains(1);
      chains[0].stages[0].imm[1] = highest;
      rig.execute(moves_through({0}), chains);
      EXPECT_EQ(rig.core.memory.scratchpad.data()[65536], highest);
      rig.set(Core::kControl, Core::kAcknowledge);
      sc_core::wait(1, sc_core::SC_US);
    }
  });
}

// One command of forty has another place, which the machine has or not, each time anew: what was
// checked before does not hide it.
TEST_F(ProgramReaderTest, ChecksWhatChangedSinceTheRunBefore) {
  expect_report("/systole/core");
  CoreRig rig(machine_with_slots(8));
  std::mt19937 random(4);
  hw::Program program;
  program.chains = different_chains(1);
  program.commands = moves_through(std::vector<std::uint16_t>(40, 0));
  program.commands.push_back({});
  rig.run([&] {
    for (int n = 0; n < 400; ++n) {
      const bool is_bad = random() % 2 == 0;
      hw::Program changed = program;
      std::uint32_t& address = changed.commands[random() % 40].as<hw::cmd::Move>()->to.address;
      address = is_bad ? 0xff000000 + random() % 0x1000000 : address + 4 * (random() % 8);
      std::vector<std::uint8_t> bytes = hw::encode_program(changed);
      rig.host.debug(tlm::TLM_WRITE_COMMAND, CoreRig::kProgramAddress, bytes.data(), bytes.size());
      rig.set(Core::kProgram, CoreRig::kProgramAddress);
      rig.set(Core::kControl, Core::kStart);
      sc_core::wait(rig.interrupt.posedge_event());
      EXPECT_EQ(rig.get(Core::kStatus), is_bad ? 2U | 8U : 2U) << n;
      rig.set(Core::kControl, Core::kAcknowledge);
      sc_core::wait(1, sc_core::SC_US);
    }
  });
}

struct BadProgram {
  const char* name;
  std::function<void(hw::Program& program)> change;
  std::function<void(std::vector<std::uint8_t>& image)> change_image;
  const char* fault;
};

class ProgramFaults : public test::SystemCTest, public testing::WithParamInterface<BadProgram> {};

TEST_P(ProgramFaults, EndTheRunAndShowInTheStatus) {
  expect_report("/systole/core");
  CoreRig rig(machine_with_slots(8));
  hw::Program program;
  program.chains = different_chains(1);
  program.commands = moves_through({0, 0});
  program.commands.push_back({});
  if (GetParam().change) GetParam().change(program);
  std::vector<std::uint8_t> image = hw::encode_program(program);
  if (GetParam().change_image) GetParam().change_image(image);
  rig.run([&] {
    rig.host.debug(tlm::TLM_WRITE_COMMAND, CoreRig::kProgramAddress, image.data(), image.size());
    rig.set(Core::kProgram, CoreRig::kProgramAddress);
    rig.set(Core::kControl, Core::kStart);
    sc_core::wait(rig.interrupt.posedge_event());
    EXPECT_EQ(rig.get(Core::kStatus), 2U | 8U) << "interrupt, fault";
    EXPECT_NE(rig.core.processor.fault().find(GetParam().fault), std::string::npos)
        << rig.core.processor.fault();
    rig.set(Core::kControl, Core::kAcknowledge);
    sc_core::wait(1, sc_core::SC_US);
    // The next program runs.
    rig.execute(moves_through({0}), different_chains(1));
    EXPECT_EQ(rig.get(Core::kStatus), 2U);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Programs, ProgramFaults,
    testing::Values(
        BadProgram{"NoProgram", {}, [](auto& image) { image[0] = 0; }, "no Systole program"},
        BadProgram{
            "BeyondMemory", {}, [](auto& image) { image[15] = 0x7f; }, "expected it in DRAM"},
        BadProgram{
            "NoSuchChain",
            [](hw::Program& program) { program.commands[1].as<hw::cmd::Move>()->chain.chain = 1; },
            {},
            "chain 1 of 1"},
        BadProgram{"BeyondTheScratchpad",
                   [](hw::Program& program) {
                     program.commands[1].as<hw::cmd::Move>()->to.address = 0xffffff;
                   },
                   {},
                   "command 1 (move): writes scratchpad bytes"},
        BadProgram{"StageOfAnotherMachine",
                   [](hw::Program& program) {
                     program.chains[0].stages.resize(100, program.chains[0].stages[0]);
                   },
                   {},
                   "stages"},
        BadProgram{"HostWithoutFunctions",
                   [](hw::Program& program) { program.commands[1] = {hw::cmd::HostCall{}}; },
                   {},
                   "command 1: the machine's host computes nothing"},
        BadProgram{"NoSuchMask",
                   [](hw::Program& program) { program.commands[1] = {hw::cmd::Attention{}}; },
                   {},
                   "mask 0 of 0"},
        BadProgram{"MaskOutsideMemory",
                   [](hw::Program& program) {
                     program.commands[1] = {hw::cmd::Attention{}};
                     program.masks = {{std::uint64_t{1} << 40, {1, 2, 3}}};
                   },
                   {},
                   "mask of 3 bytes at 1099511627776, expected it in memory"},
        BadProgram{"BadOpcode", {}, [](auto& image) { image[64 + 80] = 9; }, "command 1: opcode 9"},
        BadProgram{"EndTooEarly",
                   [](hw::Program& program) { program.commands[0] = {}; },
                   {},
                   "end, but commands follow it"},
        BadProgram{"NoEnd",
                   [](hw::Program& program) { program.commands.pop_back(); },
                   {},
                   "the last command is not end"}),
    [](const testing::TestParamInfo<BadProgram>& test) { return test.param.name; });

TEST_F(ProgramReaderTest, AnAddressOutsideMemoryIsAFault) {
  expect_report("/systole/core");
  CoreRig rig(machine_with_slots(8));
  rig.run([&] {
    rig.set(Core::kProgram, ~std::uint64_t{0} - 8);
    rig.set(Core::kControl, Core::kStart);
    sc_core::wait(rig.interrupt.posedge_event());
    EXPECT_EQ(rig.get(Core::kStatus), 2U | 8U);
  });
}

}  // namespace
}  // namespace systole::tlm_model

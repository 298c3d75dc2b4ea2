#include "mapper/replay/replay.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/array/array.h"
#include "hw/description/machine_file.h"
#include "hw/machine/machine.h"
#include "hw/memory/dram_timing.h"
#include "hw/postop/postop.h"
#include "mapper/mapping.h"
#include "mapper/replay/replay_work.h"
#include "support/network/commands.h"
#include "tests/mapper/test_graphs.h"

namespace systole::mapper {
namespace {

using test::load_command;
using test::matmul_command;
using test::move_command;
using test::store_command;

constexpr std::uint64_t kCyclePs = 1000;

/// In a bank of DRAM in which the fetch of the program opens no row.
constexpr std::uint64_t kApart = 40960;

/// A machine with ports to spare, 64 KiB to a bank of the scratchpad.
hw::Machine with_ports() {
  hw::Machine machine;
  machine.scratchpad.ports = machine.accumulator.ports = 4;
  return machine;
}

/// A program of these commands, each a separate operator, with one chain of no stages.
hw::Program program_of(std::vector<hw::Command> commands) {
  hw::Program program;
  program.chains.resize(1);
  program.operators.resize(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    commands[i].op = static_cast<std::uint32_t>(i);
  }
  program.commands = std::move(commands);
  program.commands.emplace_back();
  return program;
}

/// Replays all of it.
Replay replayed(const hw::Machine& machine, const hw::Program& program) {
  Replay replay(machine);
  replay.run(program, 0, program.commands.size());
  replay.finish();
  return replay;
}

/// Cycles of a command alone, from its dispatch on.
std::uint64_t alone(const hw::Machine& machine, const hw::Command& command) {
  const Replay replay = replayed(machine, program_of({command}));
  return replay.end() - replay.dispatch();
}

/// Cycle in which an idle DRAM with closed rows has served what arrives in cycle `arrival`.
std::uint64_t served(const hw::Machine& machine, std::uint64_t address, std::uint64_t bytes,
                     bool write, std::uint64_t arrival) {
  hw::DramTiming dram(machine.dram);
  const std::uint64_t end = dram.access(address, bytes, write, arrival * kCyclePs).end;
  return (end + kCyclePs - 1) / kCyclePs;
}

TEST(Replay, ALoneMatmulTakesItsContract) {
  for (const std::uint32_t m : {1U, 16U, 40U, 256U}) {
    for (const std::uint32_t k : {1U, 16U, 100U}) {
      const hw::Machine machine = with_ports();
      const hw::ArrayCycles cycles = hw::array_cycles(machine.array, m, 48, k, false);
      EXPECT_EQ(alone(machine, matmul_command({m, 48, k}, 0, 128 * 1024, 0)),
                cycles.latency + hw::kMatmulRegisterCycles + hw::kAccumulatorWriteCycles)
          << m << " x " << k;
    }
  }
}

TEST(Replay, AMatmulWaitsForTheBankThatBothOperandsShare) {
  hw::Machine machine;
  machine.scratchpad.ports = 1;
  const hw::Command apart = matmul_command({16, 16, 64}, 0, 128 * 1024, 0);
  const hw::Command together = matmul_command({16, 16, 64}, 0, 4096, 0);
  // 64 rows of A and 64 of B, of which the interval of 80 cycles has room for 80.
  EXPECT_EQ(alone(machine, together) - alone(machine, apart), 48U);
}

TEST(Replay, ALoneRequestTakesTheTimesOfBusAndDram) {
  const hw::Machine machine = with_ports();
  for (const std::uint32_t bytes : {1U, 16U, 33U, 64U}) {
    const hw::Program program = program_of({load_command(0, kApart, bytes, 1)});
    const Replay replay = replayed(machine, program);
    const std::uint64_t start = replay.dispatch();
    const std::uint64_t beats = (bytes + 15) / 16;
    EXPECT_EQ(replay.end(),
              served(machine, kApart, bytes, false, start + machine.bus.request_latency) + beats -
                  1 + machine.bus.response_latency)
        << bytes;
  }
}

// A bit for each group has to find room. More groups have a few more rows to open.
TEST(Replay, HoweverManyBankGroupsThereAreALoadTakesAsLong) {
  hw::Machine machine = with_ports();
  machine.dram.banks = 64;
  machine.dram.bank_groups = 8;
  const hw::Command load = load_command(0, kApart, 4096, 16);
  const auto least = static_cast<double>(alone(machine, load));
  for (const std::uint32_t groups : {16U, 32U, 64U}) {
    machine.dram.bank_groups = groups;
    EXPECT_NEAR(static_cast<double>(alone(machine, load)), least, 0.05 * least) << groups;
  }
}

/// Without micro-code and parameters: after the start of a store or move.
constexpr std::uint64_t kRegister = 1;

TEST(Replay, ALoneRowOfResultsLeavesAfterItsChain) {
  const hw::Machine machine = with_ports();
  const hw::Program program = program_of({store_command(0, kApart, 1, 64)});
  const Replay replay = replayed(machine, program);
  const hw::ChainCycles chain = hw::chain_cycles({}, 1, 64, machine.postop.lanes);
  const std::uint64_t ready =
      replay.dispatch() + kRegister + chain.fill + hw::kAccumulatorReadCycles + chain.per_row;
  // Four beats of data.
  const std::uint64_t arrival = ready + 3 + machine.bus.request_latency;
  EXPECT_EQ(replay.end(),
            served(machine, kApart, 64, true, arrival) + machine.bus.response_latency);
}

TEST(Replay, ALoneMoveTakesItsChain) {
  const hw::Machine machine = with_ports();
  const hw::ChainCycles chain = hw::chain_cycles({}, 24, 80, machine.postop.lanes);
  EXPECT_EQ(alone(machine, move_command(0, 0, 24, 80)),
            kRegister + chain.total(24) + hw::kAccumulatorReadCycles);
}

TEST(Replay, ACommandWaitsForWhatItReads) {
  const hw::Machine machine = with_ports();
  const hw::Command load = load_command(0, 4096, 64, 16);
  const hw::Command reader = matmul_command({16, 16, 64}, 0, 128 * 1024, 0);
  const hw::Command other = matmul_command({16, 16, 64}, 64 * 1024, 128 * 1024, 0);
  const std::uint64_t cycles = alone(machine, reader);
  const Replay after = replayed(machine, program_of({load, reader}));
  EXPECT_EQ(after.operator_ends()[1], after.operator_ends()[0] + cycles);
  const Replay beside = replayed(machine, program_of({load, other}));
  EXPECT_EQ(beside.operator_ends()[1], beside.dispatch() + cycles);
}

TEST(Replay, ALoadOverwritesAnOperandWhenItHasBeenRead) {
  const hw::Machine machine = with_ports();
  const hw::Command matmul = matmul_command({256, 16, 64}, 0, 128 * 1024, 0);
  const Replay replay = replayed(machine, program_of({matmul, load_command(0, 4096, 64, 1)}));
  const Replay free = replayed(machine, program_of({matmul, load_command(64 * 1024, 4096, 64, 1)}));
  const std::uint64_t interval = hw::array_cycles(machine.array, 256, 16, 64, false).interval;
  const std::uint64_t started = replay.dispatch() - 1;
  EXPECT_GE(replay.operator_ends()[1], started + interval);
  EXPECT_LT(replay.operator_ends()[1], replay.operator_ends()[0] + 100);
  EXPECT_LT(free.operator_ends()[1], started + interval);
}

TEST(Replay, MatmulsDoNotWaitForEachOthersSums) {
  const hw::Machine machine = with_ports();
  const hw::Command matmul = matmul_command({64, 16, 16}, 0, 128 * 1024, 0);
  const Replay replay = replayed(machine, program_of({matmul, matmul}));
  EXPECT_EQ(replay.operator_ends()[1] - replay.operator_ends()[0],
            hw::array_cycles(machine.array, 64, 16, 16, true).interval);
}

TEST(Replay, AFullStationHoldsUpAllThatFollow) {
  hw::Machine machine = with_ports();
  machine.core.load_queue = 1;
  const std::vector<hw::Command> commands = {load_command(0, 4096, 64, 64),
                                             load_command(65536, 1 << 20, 64, 1),
                                             matmul_command({16, 16, 16}, 1 << 17, 3 << 16, 0)};
  const Replay full = replayed(machine, program_of(commands));
  EXPECT_EQ(full.dispatch(), full.operator_ends()[0] + 2);
  machine.core.load_queue = 2;
  const Replay room = replayed(machine, program_of(commands));
  EXPECT_LT(room.dispatch(), room.operator_ends()[0]);
}

// While the load is in flight, more commands complete than all stations hold.
TEST(Replay, AChainWaitsForASlotUntilAllThatUseItHaveCompleted) {
  hw::Machine machine = with_ports();
  machine.dma.outstanding_reads = 1;  // so that the load takes long
  std::vector<hw::Command> commands{load_command(0, kApart, 1024, 64),
                                    move_command(128 * 1024, 0, 1, 16)};
  for (std::uint32_t i = 0; i < 300; ++i) {
    commands.push_back(matmul_command({1, 1, 1}, 128 * 1024, 192 * 1024, 16));
  }
  commands.push_back(move_command(128 * 1024, 0, 1, 16));
  // A chain in the slot of the first one.
  std::get<hw::cmd::Move>(commands.back().work).chain.chain =
      static_cast<std::uint16_t>(machine.core.chain_slots);
  hw::Program program = program_of(commands);
  program.chains.resize(machine.core.chain_slots + 1);
  const auto by_request = [&](std::size_t count) {
    Replay replay(machine, Replay::Service::kRequests);
    replay.run(program, 0, count);
    return replay;
  };
  const std::uint64_t loaded = by_request(1).finish();
  ASSERT_LT(by_request(commands.size() - 1).dispatch(), loaded);
  EXPECT_GT(by_request(commands.size()).dispatch(), loaded);
}

TEST(Replay, OperatorEndsAreThoseOfTheirLastCommands) {
  hw::Program program =
      program_of({load_command(0, 4096, 64, 16), load_command(4096, 8192, 64, 16)});
  program.commands[1].op = 0;
  const Replay replay = replayed(with_ports(), program);
  EXPECT_EQ(replay.operator_ends()[0], replay.end());
  EXPECT_EQ(replay.operator_ends()[1], 0U);
}

/// Loads, matmuls and stores of two C tiles in turn.
hw::Program tiles(unsigned count) {
  std::vector<hw::Command> commands;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t half = i % 2;
    commands.push_back(load_command(half * 8192, i * 4096, 64, 64));
    commands.push_back(load_command(128 * 1024 + half * 8192, (1 << 20) + i * 4096, 4096, 1));
    commands.push_back(
        matmul_command({64, 64, 64}, half * 8192, 128 * 1024 + half * 8192, half * 8192));
    commands.push_back(store_command(half * 8192, (2 << 20) + i * 4096, 64, 64));
  }
  return program_of(std::move(commands));
}

TEST(Replay, ACopyContinuesAsTheOriginalDoes) {
  const hw::Machine machine = with_ports();
  const hw::Program program = tiles(20);
  const std::size_t count = program.commands.size();
  const Replay whole = replayed(machine, program);
  for (const std::size_t part : {std::size_t{1}, count / 3, count - 2}) {
    Replay first(machine);
    std::uint64_t before = 0;
    {
      const hw::Program other = program;  // a replay keeps nothing of it
      first.run(other, 0, part);
      before = first.end();
    }
    Replay copy = first;
    for (Replay* const replay : {&first, &copy}) {
      replay->run(program, part, count);
      replay->finish();
      EXPECT_EQ(replay->end(), whole.end()) << part;
      EXPECT_EQ(replay->operator_ends(), whole.operator_ends()) << part;
    }
    EXPECT_LE(before, whole.end());
  }
}

/// Least cycles of a program's commands on the array and on the post-op unit.
struct LeastSums {
  LeastSums(const hw::Program& program, const hw::Machine& machine) {
    for (const hw::Command& command : program.commands) {
      const bool result = command.as<hw::cmd::Result>() != nullptr;
      (result ? postop : array) += least_cycles(command, program, machine);
    }
  }
  std::uint64_t array = 0, postop = 0;
};

TEST(Replay, NoProgramTakesLessThanTheLeastCyclesOfItsCommands) {
  std::vector<hw::Machine> machines(4, hw::find_machine("transformer"));
  machines[1].array.rows = machines[1].array.cols = 4;
  machines[2].postop.lanes = 4;
  machines[3].array.overlap = hw::ArrayOverlap::kNone;
  for (const hw::Machine& machine : machines) {
    for (const model::Graph& graph :
         {graph_of("vit17"), product(64, 512, 512), product(2048, 64, 16)}) {
      const hw::Program program = map_graph(graph, machine).program;
      const LeastSums least(program, machine);
      const std::uint64_t end = replayed(machine, program).end();
      EXPECT_LE(least.array, end) << graph.name;
      EXPECT_LE(least.postop, end) << graph.name;
    }
  }
  // Where a unit holds everything up, it is hardly ever idle.
  const auto share = [](const model::Graph& graph, const hw::Machine& machine,
                        std::uint64_t LeastSums::*unit) {
    const hw::Program program = map_graph(graph, machine).program;
    return static_cast<double>(LeastSums(program, machine).*unit) /
           static_cast<double>(replayed(machine, program).end());
  };
  EXPECT_GT(share(product(64, 512, 512), machines[1], &LeastSums::array), 0.9);
  // A row that leaves for DRAM takes the post-op unit its requests, too.
  EXPECT_GT(share(product(2048, 64, 16), machines[2], &LeastSums::postop), 0.6);
}

}  // namespace
}  // namespace systole::mapper

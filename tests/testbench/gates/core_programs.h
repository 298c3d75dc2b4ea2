#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/tlm/fresh_kernel.h"
#include "testbench/report/report_gates.h"
#include "testbench/rtl/core/core_limits.h"
#include "testbench/run/core_on_bus.h"
#include "tests/rtl/core/core_case.h"
#include "tests/testbench/run/random_program_run.h"

/// Random programs in the core in RTL behind AXI4 bridges on the bus of its machine, with its DRAM,
/// beside the model.
namespace systole::testbench {

/// How far the model is from gates in programs.
struct ProgramsOff {
  std::uint64_t programs = 0, equal = 0;  ///< all of whose commands are
  std::uint64_t commands = 0, commands_equal = 0;
  std::uint64_t cycles = 0, off = 0, worst = 0;  ///< of programs, to their ends
  std::map<hw::Opcode, std::uint64_t> first;     ///< programs by the first command that differs

  void add(const GatesComparison& program) {
    ++programs;
    bool same = true;
    for (const GatesCommand& command : program.commands) {
      const bool is_equal = command.gates.dispatched == command.model.dispatched &&
                            command.gates.completed == command.model.completed;
      ++commands;
      commands_equal += is_equal ? 1 : 0;
      if (same && !is_equal) ++first[command.opcode];
      same &= is_equal;
    }
    equal += same ? 1 : 0;
    cycles += program.gates;
    const std::uint64_t more = std::max(program.gates, program.model);
    const std::uint64_t less = std::min(program.gates, program.model);
    off += more - less;
    worst = std::max(worst, more - less);
  }

  void print(const char* name) const {
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "%s: %llu of %llu programs equal, %llu of %llu commands; ends off by %llu of %llu "
        "cycles, worst %llu; first to differ:",
        name, number(equal), number(programs), number(commands_equal), number(commands),
        number(off), number(cycles), number(worst));
    for (const auto& [opcode, count] : first) {
      std::printf(" %s %llu", std::string(hw::name_of(opcode)).c_str(), number(count));
    }
    std::printf("\n");
  }
};

/// `program` behind what fills the local memories, which a new core has empty.
inline hw::Program filled(hw::Program first, const hw::Program& program) {
  first.commands.pop_back();
  const auto chains = static_cast<std::uint16_t>(first.chains.size());
  first.chains.insert(first.chains.end(), program.chains.begin(), program.chains.end());
  first.operand_tiles = program.operand_tiles;
  for (hw::Command command : program.commands) {
    if (auto* const result = command.as<hw::cmd::Result>()) result->chain.chain += chains;
    if (auto* const load = command.as<hw::cmd::Load>(); load != nullptr && load->pre) {
      load->pre->chain += chains;
    }
    first.commands.push_back(std::move(command));
  }
  make_legal(first);
  first.operators.resize(1);
  return first;
}

/// The core's machine with any way to memory.
inline hw::Machine random_machine(const CoreSize& size, hw::test::Random& random) {
  const auto any = [&](std::int64_t least, std::int64_t most) {
    return static_cast<std::uint32_t>(hw::test::pick(random, least, most));
  };
  hw::Machine machine = core_machine(size);
  machine.dram.mib = 16;
  if (any(0, 1) == 0) machine.dma.slots = hw::SlotOrder::kCompletion;
  constexpr hw::ArrayOverlap kEach[] = {hw::ArrayOverlap::kFull, hw::ArrayOverlap::kPreload,
                                        hw::ArrayOverlap::kNone};
  machine.array.overlap = kEach[any(0, 3) % 3];
  const std::uint32_t farthest = any(0, 2) == 0 ? 80 : 8;
  machine.bus.request_latency = any(1, farthest);
  machine.bus.response_latency = any(1, farthest);
  if (any(0, 2) == 0) machine.dram.t_refi_ns = 0.0;
  machine.dram.controller_ns = any(0, any(0, 2) == 0 ? 100 : 30);
  machine.dram.channels = 1U << any(0, 2);
  if (any(0, 3) == 0) machine.dram.write_queue = any(0, 12);
  if (any(0, 1) == 0) {
    machine.dram.mega_transfers = any(200, 6400);
    machine.dram.banks = 4U << any(0, 3);
    machine.dram.bank_groups = 1U << any(0, 2);
    machine.dram.row_bytes = 256U << any(0, 5);
  }
  return machine;
}

/// The first `programs` random ones, and those of `found`, which once differed, in a core as
/// make_core_ports() makes it.
inline ProgramsOff compare_programs(const RtlOptions& options, const CoreSize& built,
                                    std::uint64_t programs,
                                    const std::vector<std::uint64_t>& found = {}) {
  const std::unique_ptr<CorePorts> core = make_core_ports(options, built);
  // The model takes the stages of a chain with the one that knows rows.
  CoreSize size = core->size();
  size.stages = std::min(size.stages, hw::ChainLimits{}.max_stages - 1);
  ProgramsOff off;
  std::vector<std::uint64_t> seeds(programs);
  std::iota(seeds.begin(), seeds.end(), 0);
  std::copy_if(found.begin(), found.end(), std::back_inserter(seeds),
               [programs](std::uint64_t seed) { return seed >= programs; });
  for (const std::uint64_t i : seeds) {
    hw::test::Random random(i);
    RandomCore cases(random, size, size.preop != 0);
    hw::Program drawn = filled(cases.first(), cases.next(12));
    const hw::Machine machine = random_machine(size, random);
    const mapper::LoadableProgram loaded = loadable(cases, std::move(drawn), machine);
    EXPECT_EQ(core_program_problem(loaded.program, size), "") << "program " << i;
    std::vector<std::uint8_t> input(loaded.input.bytes());
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random());

    test::fresh_kernel();
    const SimulationResult model =
        simulate(loaded, tlm_model::make_models(loaded.machine), {input}, {});
    test::fresh_kernel();
    const GatesComparison program = compare_gates(
        run_gates(loaded.machine, *core,
                  {loaded.program, loaded.address, loaded.image, loaded.input, loaded.output},
                  {input}),
        model);
    EXPECT_EQ(program.counts().mismatches, 0U) << "program " << i;
    expect_replay(loaded, model);
    if (testing::Test::HasFailure()) break;
    off.add(program);
  }
  return off;
}

}  // namespace systole::testbench
